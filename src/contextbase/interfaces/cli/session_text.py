"""Sessions with agents drawn for a terminal: their state, their runs and what was said."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.landing_text import landing_words
from contextbase.interfaces.cli.output import on_one_line, subject, visible
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.interfaces.cli.run_progress import duration
from contextbase.interfaces.cli.todo_marks import TODO_MARKS
from contextbase.vocabulary import MessagePartKind, MessageRole, RunState
from contextbase.wire.session import MessageView, OpenedSessionView, RunView, SessionRewoundView, SessionWorkerView
from contextbase.wire.todo import TodoItemView

__all__ = ["drawn_messages", "drawn_rewind", "drawn_session", "drawn_todos"]

_STYLES: Final = {RunState.SUCCEEDED: "green", RunState.FAILED: "red", RunState.CANCELED: "yellow"}
_SHORTEST_PHASE: Final = 50  # milliseconds


def drawn_session(session: OpenedSessionView, runs: Iterable[RunView]) -> Iterator[Text]:
    """The session, its worker, and its runs with the newest first."""
    yield Text.assemble((on_one_line(session.title or "(no message yet)"), "bold"), f"  {session.state}")
    about = {
        "session": str(session.id),
        "agent": f"{session.agent}, for {session.owner}",
        "program": session.provider + (f", {session.model}" if session.model else ""),
        "folder": session.folder or "all of the project",
        "changes": _LANDS[session.land],
        "active": local_time(session.last_active_at) + (", pinned" if session.pinned else ""),
        "worker": _worker(session.worker),
    }
    for name, value in about.items():
        yield Text.assemble((f"{name:9}", "dim"), on_one_line(value))
    for run in runs:
        yield Text()
        yield from _run(run, short_id(session.id))


def drawn_messages(messages: Iterable[MessageView]) -> Iterator[Text]:
    """What was said, without what was only thought."""
    for message in messages:
        text = "\n\n".join(part.text for part in message.parts if part.kind is MessagePartKind.TEXT and part.text)
        if not text:
            continue
        if message.role is MessageRole.USER:
            yield Text(f"> {visible(text)}", "bold")
        else:
            yield Text(visible(text))


def drawn_rewind(rewound: SessionRewoundView) -> Iterator[Text]:
    """Where the conversation stands, and what is left to decide."""
    hidden = counted(len(rewound.runs), "message")
    files = " with its files" if rewound.files else ""
    yield Text(f"The conversation went back{files}; {hidden} taken back. {_MEMORY[rewound.memory]}")
    landed = [run for run in rewound.runs if run.landed_seq is not None]
    if landed:
        yield Text("What these runs changed stays in the project. To take it back as well:", "yellow")
        for run in reversed(landed):
            yield Text(f"  contextbase undo --run {run.id}")
    if rewound.prompt is not None:
        yield Text.assemble(("You said: ", "dim"), visible(rewound.prompt))


_MEMORY: Final = {
    "resumed": "The agent knows what it knew then.",
    "rebuilt": "The agent is told what was said until then.",
    "empty": "The agent knows nothing yet.",
}


def drawn_todos(todos: Iterable[TodoItemView]) -> Iterator[Text]:
    for todo in todos:
        yield Text.assemble((f"{TODO_MARKS[todo.status]} ", "dim"), on_one_line(todo.content))


_LANDS: Final = {
    "auto": "go through the gate after each run (auto)",
    "after_review": "wait until somebody lands them (after_review)",
    "never": "stay in the session (never)",
}


def _worker(worker: SessionWorkerView | None) -> str:
    if worker is None:
        return "none yet"
    where = f" on {worker.machine}" if worker.machine else ""
    wanted = "" if worker.state is worker.desired_state else f", to be {worker.desired_state}"
    stored = f"; stored {local_time(worker.last_sync_at)}" if worker.last_sync_at is not None else ""
    failed = f"; could not be stored: {worker.last_sync_error}" if worker.last_sync_error else ""
    lost = f"; lost {local_time(worker.lost_at)}" if worker.lost_at is not None else ""
    alert = f"; ALERT: {worker.alert}" if worker.alert else ""
    return f"{worker.state}{where}{wanted}{stored}{failed}{lost}{alert}"


def _run(run: RunView, session: str) -> Iterator[Text]:
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    back = ", taken back" if run.rewound_at is not None else ""
    yield Text.assemble(
        (f"run {run.number}  ", "bold"),
        (run.state.replace("_", " "), _STYLES.get(run.state, "cyan")),
        (f"{again}{back}  {local_time(run.created_at)}  {short_id(run.id)}", "dim"),
    )
    yield Text(f"  > {subject(run.prompt)}")
    if run.message and run.state is not RunState.SUCCEEDED:
        yield Text(f"  {on_one_line(run.message)}", _STYLES.get(run.state, ""))
    if run.place is not None:
        yield Text(f"  {run.place.state}, {counted(run.place.ahead, 'run')} before it")
    spent = {state: run.phases.get(state, 0) for state in RunState}  # in the order a run goes through them
    phases = [f"{state} {duration(ms / 1000)}" for state, ms in spent.items() if ms >= _SHORTEST_PHASE]
    if phases:
        yield Text(f"  {', '.join(phases)}", "dim")
    if run.landed is not None:
        yield Text(f"  {landing_words([run.landed], session)}")
