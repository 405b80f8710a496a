"""How commands of agents are doing, and what became of them, drawn for a terminal."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rich.table import Table
from rich.text import Text

from contextbase.errors import ContextbaseError
from contextbase.interfaces.cli.output import on_one_line, visible
from contextbase.interfaces.cli.phrases import counted
from contextbase.wire.sandbox import OutcomeView
from contextbase.wire.workspace import WorkspaceCompleteView

__all__ = [
    "STATUS_STYLES",
    "STATUS_WORDS",
    "AgentProgress",
    "common_refusal",
    "drawn_progress",
    "drawn_summary",
    "exit_code_of",
    "how_it_ended",
]

STATUS_WORDS: Final = {
    "written": "written",
    "merged": "merged with others' changes",
    "unchanged": "already there",
    "superseded": "superseded by another version (kept in history)",
    "in_review": "waiting for review",
    "refused": "refused",
}
_SUCCEEDED: Final = "succeeded"
_FAILED: Final = "failed"
_UNFINISHED: Final = "did not finish"
_NOT_STARTED: Final = "did not start"
_ENDINGS: Final = (_SUCCEEDED, _FAILED, _UNFINISHED, _NOT_STARTED)
STATUS_STYLES: Final = {
    "superseded": "magenta",
    "in_review": "magenta",
    "refused": "red",
    "uncommitted": "yellow",
    "discarded": "dim",
}
_SIGNAL_EXIT: Final = 128
_LIMIT_EXIT: Final = 124  # as `timeout` has it


@dataclass(kw_only=True)
class AgentProgress:
    """One agent of several."""

    agent: str
    started: float | None = None  # by time.monotonic()
    last_line: str = ""
    outcome: OutcomeView | None = None
    completed: WorkspaceCompleteView | None = None
    kept_because: str | None = None
    error: str | None = None
    refusal: ContextbaseError | None = None  # the error, if the command never started
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
        return f"stopped by its {outcome.stopped_by} limit"
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


def common_refusal(agents: list[AgentProgress]) -> ContextbaseError | None:
    """The error that kept every one of them from starting: one sentence says it for all."""
    refusals = [one.refusal for one in agents if one.refusal is not None]
    return refusals[0] if len(refusals) == len(agents) and len({error.code for error in refusals}) == 1 else None


def drawn_progress(agents: list[AgentProgress]) -> Table | Text:
    if common_refusal(agents) is not None:
        return Text()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("AGENT", "STATE", "SECONDS", "CHANGES", "OUTPUT"):
        table.add_column(column, no_wrap=column != "CHANGES", overflow="ellipsis" if column == "OUTPUT" else "fold")
    for one in agents:
        table.add_row(
            one.agent, _state(one), _seconds(one), _changes(one.counts), Text(visible(one.last_line[:60]), "dim")
        )
    return table


def drawn_summary(agents: list[AgentProgress]) -> Iterator[Text]:
    """How the commands ended, what became of their changes, and what is left to do."""
    endings = Counter(_ending(one) for one in agents)
    told = ", ".join(f"{endings[name]} {name}" for name in _ENDINGS if endings[name])
    yield Text(f"{counted(len(agents), 'agent')}: {told}.")
    total: Counter[str] = Counter()
    for one in agents:
        total.update(one.counts)
    changes = ", ".join(f"{total[name]:,} {words}" for name, words in STATUS_WORDS.items() if total[name])
    yield Text(f"Changes: {changes}." if changes else "Nothing was committed.")
    for one in agents:
        if one.error is not None:
            yield Text(f"{one.agent}: {on_one_line(one.error)}", "red")
        elif one.kept_because is not None:
            yield Text(f"{one.agent}: {one.kept_because}; its changes are still in its workspace.", "yellow")
        elif one.completed is not None and not one.completed.removed:
            yield Text(f"{one.agent}: its folder is kept: {one.completed.workspace.path}", "yellow")
        elif not one.is_done and one.started is not None:
            yield Text(f"{one.agent}: did not finish; its changes, if any, are still in its workspace.", "yellow")
    if any(not one.is_done and one.started is not None for one in agents):
        yield Text("Look at a workspace: contextbase workspace status|complete|abandon --agent NAME", "yellow")
    if total["in_review"]:
        yield Text("Decide what waits for review: contextbase review list", "magenta")


def _ending(one: AgentProgress) -> str:
    if one.error is None and not one.is_done:
        return _UNFINISHED if one.started is not None else _NOT_STARTED
    return _SUCCEEDED if one.error is None and one.outcome is not None and one.outcome.succeeded else _FAILED


def _state(one: AgentProgress) -> Text:
    if one.error is not None:
        return Text("failed", "red")
    if one.outcome is None:
        return Text("waiting" if one.started is None else "running", "dim" if one.started is None else "cyan")
    if not one.is_done:
        return Text("committing", "cyan")
    return Text(how_it_ended(one.outcome), "green" if one.outcome.succeeded else "red")


def _seconds(one: AgentProgress) -> str:
    if one.started is None:
        return ""
    return f"{(one.ended or time.monotonic()) - one.started:.1f}"


def _changes(counts: Counter[str]) -> Text:
    parts = [
        (f"{counts[name]} {name.replace('_', ' ')} ", STATUS_STYLES.get(name, "green"))
        for name in STATUS_WORDS
        if counts[name]
    ]
    return Text.assemble(*parts)
