"""`contextbase chat`: a conversation with an agent in a terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import typer
from rich.text import Text

from contextbase.agent_vocabulary import ExecutionProfile, QuestionStatus
from contextbase.errors import ContextbaseError, InvalidInput
from contextbase.interfaces.cli.agent import (
    AppOption,
    AppProjectOption,
    LandOption,
    ModelOption,
    ProfileOption,
    ProviderOption,
)
from contextbase.interfaces.cli.agent_text import AgentAtWork, drawn_end
from contextbase.interfaces.cli.command import command
from contextbase.interfaces.cli.connection import Project, named
from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.landing_text import drawn_landing
from contextbase.interfaces.cli.options import Folder
from contextbase.interfaces.cli.output import error_console, on_one_line, report
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.question_text import drawn_question, typed_answer
from contextbase.interfaces.cli.run_printer import RunPrinter
from contextbase.interfaces.cli.session_text import drawn_messages, drawn_rewind, drawn_session
from contextbase.interfaces.cli.sessions import message_named, session_named
from contextbase.sdk import Client
from contextbase.vocabulary import Land, SendMode
from contextbase.wire.session import RunView, SessionView

__all__ = ["chat"]

_HELP: Final = (
    ("/land", "put into the project what waits in the session"),
    ("/discard", "throw away what waits in the session"),
    ("/rewind [N]", "take back message N and all after it; with `files`, your folder's work, too. Default: the last"),
    ("/fork [N]", "go on from before message N in a new session. Default: from here"),
    ("/status", "show the session"),
    ("/model NAME", "use another model from the next message on"),
    ("/agent NAME", "let another agent program answer from the next message on"),
    ("/attach FILE", "send a file of this machine with the next message"),
    ("/stop", "stop the session's sandbox; the next message starts it again"),
    ("/quit", "leave; the session stays, and goes on when you name it"),
)
_PROMPT: Final = "> "
_LAST_SHOWN: Final = 4


@command
def chat(
    client: Client,
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Go on with this one. Default: a new session.", show_default=False),
    ] = None,
    project: Project = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
    folder: Folder = None,
    land: LandOption = Land.AUTO,
    profile: ProfileOption = ExecutionProfile.DEFAULT,
    mode: Annotated[
        SendMode, typer.Option(help="While a run works: wait for its end, steer the working turn, or interrupt it.")
    ] = SendMode.QUEUE,
    app: AppOption = None,
    app_project: AppProjectOption = None,
    *,
    as_json: bool,
) -> None:
    """Talk with an agent that works in a folder of its own. What it changes lands after each answer.

    A line is a message; one that ends with a backslash goes on in the next. Ctrl-C stops an answer, twice leaves. With
    --json, each event is printed as a line."""
    if session is not None:
        known = client.sessions.get(session_named(client, session))
        conversation = _Conversation(client, known, model, mode, as_json=as_json)
        if mode is SendMode.QUEUE:
            conversation.go_on(known.open_runs)
    elif app is not None:
        overrides = {"provider": provider, "model": model}
        made = client.sessions.create_from_app(app, app_project=app_project, overrides=overrides)
        conversation = _Conversation(client, made, model, mode, as_json=as_json)
    else:
        made = client.sessions.create(
            named(project), provider=provider, model=model, folder=folder, land=land, profile=profile
        )
        conversation = _Conversation(client, made, model, mode, as_json=as_json)
    try:
        conversation.hold()
    finally:
        conversation.leave()


class _PersonLeft(Exception):
    """Nobody is there to answer what the agent asks."""


class _Conversation:
    def __init__(
        self, client: Client, session: SessionView, model: str | None, mode: SendMode, *, as_json: bool
    ) -> None:
        self._client = client
        self._session = session
        self._model = model
        self._provider: str | None = None
        self._mode = mode
        self._attached: list[Path] = []
        self._as_json = as_json
        self._name = short_id(session.id)
        self._is_used = session.last_run > 0
        self._cursor: str | None = None  # of the last event that was shown
        self._typed = _lines()

    def go_on(self, open_runs: list[RunView]) -> None:
        """Show where the conversation stands, and what its agent does at this moment."""
        if not self._as_json:
            _show(drawn_messages(self._client.sessions.messages(self._session.id, limit=_LAST_SHOWN).messages))
        for run in open_runs:
            self._follow(run)

    def hold(self) -> None:
        """Until the person leaves."""
        place = f"the folder {self._session.folder}" if self._session.folder else "the project"
        place = "a folder that the app made" if self._session.app is not None else place
        self._note(f"{self._session.provider} works in {place}. /help lists commands; Ctrl-D leaves.")
        for line in self._typed:
            try:
                if line.startswith("/"):
                    if not self._obey(line):
                        break
                elif line.strip():
                    attached, self._attached = self._attached, []
                    run = self._client.sessions.send(
                        self._session.id,
                        line,
                        model=self._model,
                        provider=self._provider,
                        mode=self._mode,
                        attachments=attached,
                    )
                    self._is_used = True
                    if run.mode is not self._mode:
                        self._note("The agent cannot be steered now; the message waits for its turn.")
                    self._follow(run)
            except ContextbaseError as error:
                report(error, as_json=self._as_json)

    def leave(self) -> None:
        """A session in which nothing was said is not kept."""
        if self._is_used:
            self._note(f"The session stays: contextbase chat {self._name}")
        else:
            self._client.sessions.delete(self._session.id)

    def _follow(self, run: RunView) -> None:
        """To its end. Ctrl-C stops it, and once more leaves."""
        printer = RunPrinter()
        self._cursor = None
        try:
            self._print(printer, run.id)
        except KeyboardInterrupt:
            printer.note("Stopping it. Ctrl-C again leaves.", "yellow")
            self._client.sessions.cancel(run.id)
            self._print(printer, run.id)
        except _PersonLeft:
            self._note(f"The agent waits for an answer: contextbase session answer {self._name} ANSWER")
            return
        finally:
            printer.close()
        if not self._as_json:
            ended = self._client.sessions.run(run.id)
            _show(drawn_end(AgentAtWork(session=self._session, run=ended, progress=printer.progress)))

    def _print(self, printer: RunPrinter, run_id: UUID) -> None:
        for received in self._client.sessions.events(run_id, after=self._cursor):
            if self._as_json:
                sys.stdout.write(received.item.model_dump_json() + "\n")
                sys.stdout.flush()
            elif received.item.type == "event":
                printer.take(received.item.kind, received.item.payload)
                if received.item.kind == "human_loop.requested":
                    printer.close()
                    self._ask(run_id, str(received.item.payload.get("question_id")))
            self._cursor = received.cursor

    def _ask(self, run_id: UUID, question_id: str) -> None:
        """Let the person answer what the agent asks, unless somebody has."""
        asked = self._client.sessions.questions(run_id).questions
        question = next((one for one in asked if one.question_id == question_id), None)
        if question is None or question.status is not QuestionStatus.PENDING:
            return
        _show(drawn_question(question))
        for line in self._typed:
            try:
                self._client.sessions.answer(question_id, **typed_answer(question, line))
            except ContextbaseError as error:
                report(error, as_json=self._as_json)
                if not isinstance(error, InvalidInput):
                    return
            else:
                return
        raise _PersonLeft

    def _obey(self, line: str) -> bool:
        """A command of the person's; False: leave."""
        name, _, rest = line[1:].strip().partition(" ")
        match name:
            case "quit" | "exit" | "q":
                return False
            case "land":
                _show(drawn_landing(self._client.sessions.land(self._session.id), self._name))
            case "discard":
                _show(drawn_landing(self._client.sessions.discard(self._session.id), self._name))
            case "rewind":
                self._rewind(rest.split())
            case "fork":
                self._fork(rest.strip() or None)
            case "status":
                found = self._client.sessions.get(self._session.id)
                _show(drawn_session(found, self._client.sessions.runs(self._session.id).runs))
            case "model":
                self._model = rest.strip() or None
                self._note(f"The next message goes to {self._model or 'the default model of the session'}.")
            case "attach":
                self._attached.append(Path(rest.strip()).expanduser())
                self._note(f"The next message has {counted(len(self._attached), 'file')}.")
            case "agent":
                self._provider = rest.strip() or None
                self._note(f"The next message goes to {self._provider or self._session.provider}.")
            case "stop":
                self._client.sessions.stop(self._session.id)
                self._note("The sandbox stops; the next message starts it again.")
            case _:
                if name != "help":
                    self._note(f"/{name[:40]} is not a command. A space before it makes it a message.")
                _show(Text.assemble((f"{each:14}", "cyan"), what) for each, what in _HELP)
        return True

    def _rewind(self, words: list[str]) -> None:
        with_files = "files" in words
        numbers = [word for word in words if word != "files"]
        if not numbers:
            runs = self._client.sessions.runs(self._session.id).runs
            numbers = [str(run.number) for run in runs if run.rewound_at is None] or ["0"]
        named = message_named(self._client, self._session.id, numbers[0])
        _show(drawn_rewind(self._client.sessions.rewind(self._session.id, named, files=with_files)))

    def _fork(self, number: str | None) -> None:
        named = None if number is None else message_named(self._client, self._session.id, number)
        self._session = self._client.sessions.fork(self._session.id, named)
        self._name = short_id(self._session.id)
        self._is_used = True
        self._note(f"You are in the new session {self._name} now.")

    def _note(self, text: str) -> None:
        if not self._as_json:
            _show([Text(on_one_line(text), "dim")])


def _show(lines: Iterable[Text]) -> None:
    for line in lines:
        error_console.print(line, soft_wrap=True, highlight=False)


def _lines() -> Iterator[str]:
    """What the person types, a message at a time, until they leave."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401 - input() has a history and keys with it
    message, is_leaving = "", False
    while True:
        try:
            line = _line(is_terminal=is_terminal)
        except EOFError:
            break
        except KeyboardInterrupt:
            error_console.print()
            if is_leaving or not is_terminal:
                break
            _show([Text("Ctrl-C again leaves; so does /quit.", "dim")])
            message, is_leaving = "", True
            continue
        is_leaving = False
        if line.endswith("\\"):
            message += line[:-1] + "\n"
            continue
        yield message + line
        message = ""
    if message:
        yield message


def _line(*, is_terminal: bool) -> str:
    if is_terminal and sys.stdout.isatty():
        return input(_PROMPT)
    if is_terminal:
        sys.stderr.write(_PROMPT)
        sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")
