"""How commands of agents are doing, and what became of them, drawn for a terminal."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rich.table import Table
from rich.text import Text

from contextbase.interfaces.cli.output import on_one_line, visible
from contextbase.wire.sandbox import OutcomeView
from contextbase.wire.workspace import WorkspaceCompleteView

__all__ = ["Progress", "drawn_progress", "drawn_summary", "exit_code_of", "how_it_ended"]

_STATUSES: Final = ("written", "merged", "unchanged", "superseded", "in_review", "refused")
_STYLES: Final = {"superseded": "magenta", "in_review": "magenta", "refused": "red"}
_SIGNAL_EXIT: Final = 128
_LIMIT_EXIT: Final = 124  # as `timeout` has it


@dataclass(kw_only=True)
class Progress:
    """One agent of several."""

    agent: str
    started: float | None = None  # by time.monotonic()
    last_line: str = ""
    outcome: OutcomeView | None = None
    completed: WorkspaceCompleteView | None = None
    kept_because: str | None = None
    error: str | None = None
    ended: float | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def is_done(self) -> bool:
        return self.ended is not None

    @property
    def went_well(self) -> bool:
        settled = self.completed is not None and self.completed.removed
        return settled and self.outcome is not None and self.outcome.succeeded and not self._lost

    @property
    def _lost(self) -> int:
        return self.counts["refused"] + self.counts["in_review"] + self.counts["superseded"]

    def take_output(self, text: str) -> None:
        lines = [line for line in (self.last_line[-200:] + text).splitlines() if line.strip()]
        self.last_line = lines[-1][-200:] if lines else ""

    def take_completed(self, completed: WorkspaceCompleteView) -> None:
        self.completed = completed
        self.counts.update(change.status for change in completed.changes)


def how_it_ended(outcome: OutcomeView) -> str:
    if outcome.stopped_by is not None:
        return f"stopped: {outcome.stopped_by} limit"
    if outcome.signal is not None:
        return f"signal {outcome.signal}"
    return "done" if outcome.exit_code == 0 else f"exit code {outcome.exit_code}"


def exit_code_of(outcome: OutcomeView) -> int:
    """As a shell would give it."""
    if outcome.succeeded:
        return 0
    if outcome.stopped_by is not None:
        return _LIMIT_EXIT
    return outcome.exit_code or _SIGNAL_EXIT + (outcome.signal or 0)


def drawn_progress(agents: list[Progress]) -> Table:
    table = Table("AGENT", "STATE", "SECONDS", "CHANGES", "OUTPUT", box=None, header_style="bold", pad_edge=False)
    for one in agents:
        table.add_row(
            one.agent, _state(one), _seconds(one), _changes(one.counts), Text(visible(one.last_line[:60]), "dim")
        )
    return table


def drawn_summary(agents: list[Progress]) -> Iterator[Text]:
    total: Counter[str] = Counter()
    for one in agents:
        total.update(one.counts)
    well = sum(one.went_well for one in agents)
    yield Text(f"{well} of {len(agents)} went well. {_sentence(total)}")
    for one in agents:
        if one.error is not None:
            yield Text(f"{one.agent}: {on_one_line(one.error)}", "red")
        elif one.kept_because is not None:
            yield Text(f"{one.agent}: {one.kept_because}; its workspace is open still, with what it changed.", "yellow")
        elif one.completed is not None and not one.completed.removed:
            yield Text(f"{one.agent}: its folder is kept: {one.completed.workspace.workspace_path}", "yellow")
        elif not one.is_done and one.started is not None:
            yield Text(f"{one.agent}: came to no end; its workspace has what it had changed, if anything.", "yellow")
    in_review = [change for one in agents if one.completed for change in one.completed.changes if change.review_id]
    if in_review:
        yield Text(f"{len(in_review)} wait for a person: contextbase review list", "magenta")


def _state(one: Progress) -> Text:
    if one.error is not None:
        return Text("failed", "red")
    if one.outcome is None:
        return Text("waiting" if one.started is None else "running", "dim" if one.started is None else "cyan")
    if not one.is_done:
        return Text("committing", "cyan")
    return Text(how_it_ended(one.outcome), "green" if one.outcome.succeeded else "red")


def _seconds(one: Progress) -> str:
    if one.started is None:
        return ""
    return f"{(one.ended or time.monotonic()) - one.started:.1f}"


def _changes(counts: Counter[str]) -> Text:
    parts = [
        (f"{counts[name]} {name.replace('_', ' ')} ", _STYLES.get(name, "green")) for name in _STATUSES if counts[name]
    ]
    return Text.assemble(*parts)


def _sentence(total: Counter[str]) -> str:
    parts = [f"{total[name]} {name.replace('_', ' ')}" for name in _STATUSES if total[name]]
    return f"Changes: {', '.join(parts)}." if parts else "Nothing was changed."
