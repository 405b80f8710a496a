"""Agents at work on a task, and what came of it, drawn for a terminal."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from rich.table import Table
from rich.text import Text

from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.landing_text import drawn_landing, landing_words, went_in
from contextbase.interfaces.cli.output import on_one_line
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.run_progress import RunProgress, duration, tokens
from contextbase.vocabulary import LandingState, RunState
from contextbase.wire.session import RunView, SessionView

__all__ = ["AgentAtWork", "drawn_agents", "drawn_end", "drawn_ends", "is_settled"]

_STYLES = {"succeeded": "green", "failed": "red", "canceled": "yellow", "queued": "dim"}


@dataclass(kw_only=True)
class AgentAtWork:
    """One of the agents of a command: its session, its run once the task is sent, and how it is doing."""

    session: SessionView
    run: RunView | None = None
    progress: RunProgress = field(default_factory=RunProgress)
    goes_on: bool = False  # its session stays open

    @property
    def name(self) -> str:
        return short_id(self.session.id)

    @property
    def run_id(self) -> UUID:
        if self.run is None:
            raise RuntimeError("a run that was not started")
        return self.run.id

    @property
    def went_well(self) -> bool:
        return self.run is not None and self.run.state is RunState.SUCCEEDED and went_in(self.run.landed)


def is_settled(one: AgentAtWork) -> bool:
    """Whether nothing is left to do in its session."""
    run = one.run
    if run is None or run.state is not RunState.SUCCEEDED:
        return False
    return run.landed is None or run.landed.state is not LandingState.WAITS


def drawn_agents(agents: list[AgentAtWork]) -> Table:
    """One line for each."""
    table = Table(box=None, header_style="bold", pad_edge=False, expand=True)
    for column in ("SESSION", "STATE", "TIME", "TOKENS"):
        table.add_column(column, no_wrap=True)
    table.add_column("DOING", no_wrap=True, overflow="ellipsis", ratio=1)
    for one in agents:
        progress = one.progress
        table.add_row(
            one.name,
            Text(progress.words, _STYLES.get(progress.state, "cyan")),
            "" if progress.seconds is None else duration(progress.seconds),
            tokens(progress.tokens) if progress.tokens else "",
            Text(on_one_line(progress.error or progress.doing), "red" if progress.error else "dim"),
        )
    return table


def drawn_ends(agents: list[AgentAtWork]) -> Iterator[Text]:
    """What came of the task."""
    if len(agents) == 1:
        yield from drawn_end(agents[0])
        return
    for one in agents:
        yield from _drawn_line(one)
    states = Counter(str(one.run.state) for one in agents if one.run is not None)
    told = ", ".join(f"{number} {state}" for state, number in sorted(states.items(), reverse=True))
    landed = [one.run.landed for one in agents if one.run is not None and one.run.landed is not None]
    yield Text(f"{counted(len(agents), 'agent')}: {told}. {landing_words(landed, 'SESSION')}", "bold")


def drawn_end(one: AgentAtWork) -> Iterator[Text]:
    """What came of one run, in words."""
    run, progress = one.run, one.progress
    if run is None:
        return
    if run.state is RunState.FAILED:
        yield Text.assemble(("Failed: ", "bold red"), on_one_line(run.message or run.reason or "no reason was given"))
    elif run.state is RunState.CANCELED:
        yield Text("The run was canceled.", "yellow")
    if run.landed is not None:
        yield from drawn_landing(run.landed, one.name)
    spent = [] if progress.seconds is None else [duration(progress.seconds)]
    spent += [f"{tokens(progress.tokens)} tokens"] if progress.tokens else []
    go_on = [f"go on: contextbase chat {one.name}"] if one.goes_on else []
    if told := "; ".join(filter(None, [", ".join(spent), *go_on])):
        yield Text(told, "dim")


def _drawn_line(one: AgentAtWork) -> Iterator[Text]:
    run, progress = one.run, one.progress
    if run is None:
        return
    seconds = "" if progress.seconds is None else f"  {duration(progress.seconds)}"
    what = run.message or run.reason or "" if run.state is RunState.FAILED else ""
    landed = landing_words([run.landed], one.name) if run.landed is not None else ""
    yield Text.assemble(
        f"{one.name}  ",
        (f"{progress.words:9}", _STYLES.get(str(run.state), "")),
        (f"{seconds}  ", "dim"),
        on_one_line(" ".join(filter(None, (what, landed)))),
    )
