# Generated from aio/sessions.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Sessions with agents, as a part of the clients: `client.sessions`."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack
from uuid import UUID, uuid4

from pydantic import TypeAdapter

from contextbase.agent_vocabulary import ExecutionProfile, QuestionStatus
from contextbase.errors import InvalidInput
from contextbase.sdk.arguments import checked, input_checked
from contextbase.sdk.attachments import attachment_of
from contextbase.sdk.blocking.connection import Connection
from contextbase.sdk.blocking.following import followed
from contextbase.sdk.http import Body
from contextbase.sdk.options import AnswerOptions, ProfileName, QuestionStatusName, Received, SessionOptions
from contextbase.vocabulary import SendMode
from contextbase.wire.question import QuestionPage, QuestionReplyBody, QuestionView
from contextbase.wire.session import (
    LandingView,
    MessagePage,
    OpenedSessionView,
    RunCreate,
    RunEndItem,
    RunItem,
    RunPage,
    RuntimeVersionPin,
    RunView,
    SessionCreate,
    SessionFork,
    SessionPage,
    SessionRewind,
    SessionRewoundView,
    SessionView,
    ToolExecutionPage,
)
from contextbase.wire.todo import TodoEventPage, TodoList

if TYPE_CHECKING:
    from contextbase.sdk.blocking.terminal import Terminal

__all__ = ["Session", "Sessions"]

_SESSIONS: Final = "/api/v1/sessions"
_RUNS: Final = "/api/v1/runs"
_ITEM: Final[TypeAdapter[RunItem]] = TypeAdapter(RunItem)
_LANDING_SECONDS: Final = 600.0


class Sessions:
    """Sessions: conversations with an agent at work in a project. You see your own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def create(self, project: str, **wishes: Unpack[SessionOptions]) -> SessionView:
        """A new session. Its agent may do what your token allows in the project, and no more than you may. Not sent
        again when there is no answer: you might get two."""
        with input_checked("create()"):
            body = SessionCreate.model_validate({"project": project, **wishes})
        return self._connection.call(SessionView, "POST", _SESSIONS, body)

    @checked
    def open(
        self, session: UUID | None = None, *, project: str | None = None, **wishes: Unpack[SessionOptions]
    ) -> "Session":
        """A session to talk to: one that there is, or a new one in a project."""
        if (session is None) == (project is None):
            raise InvalidInput("open(): give either the id of a session or the project of a new one.")
        if session is not None:
            if wishes:
                raise InvalidInput("open(): a session that there is keeps its options; give them with a project.")
            return Session(self.get(session), self)
        return Session(self.create(str(project), **wishes), self)

    @checked
    def create_from_app(
        self,
        app: str,
        *,
        app_project: str | None = None,
        runtime_version: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        title: str = "",
    ) -> SessionView:
        """A new session that an app composes and configures. `overrides` are the last layer of its configuration;
        without a `runtime_version` it follows the app's latest manifest. Raises `Conflict` if the app has none."""
        with input_checked("create_from_app()"):
            wanted = {"app": app, "app_project": app_project, "runtime_version": runtime_version, "title": title}
            body = SessionCreate.model_validate(wanted | {"overrides": overrides})
        return self._connection.call(SessionView, "POST", _SESSIONS, body)

    @checked
    def set_runtime_version(self, session: UUID, runtime_version: str | None) -> RuntimeVersionPin:
        """Compose a session of an app of this manifest from its next run on; None: of the latest."""
        body = RuntimeVersionPin(runtime_version=runtime_version)
        return self._connection.call(RuntimeVersionPin, "PUT", f"{_SESSIONS}/{session}/runtime-version", body)

    @checked
    def list(
        self, project: str | None = None, *, alerted: bool = False, before: UUID | None = None, limit: int = 100
    ) -> SessionPage:
        """Your own, newest first; `alerted`: whose files cannot be stored. `next_before`: `before` of the next page."""
        return self._connection.read(
            SessionPage, _SESSIONS, project=project, alerted=alerted, before=before, limit=limit
        )

    @checked
    def get(self, session: UUID) -> OpenedSessionView:
        """A session with its worker and the runs that have not ended."""
        return self._connection.read(OpenedSessionView, f"{_SESSIONS}/{session}")

    @checked
    def delete(self, session: UUID) -> None:
        """Remove a session with all that was said and done in it. What its agent committed stays."""
        self._connection.done("DELETE", f"{_SESSIONS}/{session}")

    @checked
    def send(
        self,
        session: UUID,
        message: str,
        *,
        model: str | None = None,
        profile: ProfileName | ExecutionProfile | None = None,
        provider: str | None = None,
        options: Mapping[str, Any] | None = None,
        mode: SendMode = SendMode.QUEUE,
        attachments: Sequence[Path] = (),
        key: str | None = None,
    ) -> RunView:
        """Send the agent a message; `events` tells what comes of it. It is sent again while the server does not
        answer, and queued once: `key` is what tells one message from another (None: a new one). `provider`: another
        agent program than the session's, for this message. `mode`: while a run works, the message waits, goes into
        the working turn (the run that is answered has the mode `queue` if it cannot), or ends that first.
        `attachments`: files of this machine, for the agent. Raises
        `Conflict` for a session that is closed."""
        with input_checked("send()"):
            body = RunCreate.model_validate(
                {
                    "message": message,
                    "model": model,
                    "profile": profile,
                    "provider": provider,
                    "options": dict(options or {}),
                    "mode": mode,
                    "attachments": [attachment_of(path) for path in attachments],
                }
            )
        headers = {"Idempotency-Key": key or uuid4().hex}
        return self._connection.retried(
            lambda: self._connection.call(RunView, "POST", f"{_SESSIONS}/{session}/runs", body, headers=headers)
        )

    @checked
    def runs(self, session: UUID, *, before: int | None = None, limit: int = 50) -> RunPage:
        """Newest first. Pass the page's `next_before` as `before` for the next page."""
        return self._connection.read(RunPage, f"{_SESSIONS}/{session}/runs", before=before, limit=limit)

    @checked
    def messages(self, session: UUID, *, before: int | None = None, limit: int = 50) -> MessagePage:
        """The newest messages, in the order they were said. Pass the page's `next_before` as `before` for those before
        them."""
        return self._connection.read(MessagePage, f"{_SESSIONS}/{session}/messages", before=before, limit=limit)

    @checked
    def run(self, run: UUID) -> RunView:
        """A run, with its place in the queue until it has ended."""
        return self._connection.read(RunView, f"{_RUNS}/{run}")

    @checked
    def tools(self, run: UUID, *, after: int = 0, limit: int = 100) -> ToolExecutionPage:
        """What the run's agent did with its tools, in order. Pass the page's `next_after` as `after` for the next."""
        return self._connection.read(ToolExecutionPage, f"{_RUNS}/{run}/tools", after=after, limit=limit)

    @checked
    def events(self, run: UUID, *, after: str | None = None) -> Generator[Received[RunItem], None, None]:
        """What happens in a run, each item once and in order, to its end: the last is a `RunEndItem` with the run.
        `after`: the cursor of an item (None: from the beginning). A connection that is lost is made again. Close it if
        you stop early (`contextlib.closing`)."""
        stream = followed(self._connection, f"{_RUNS}/{run}/events", _ITEM, after)
        with closing(stream):
            for received in stream:
                yield received
                if isinstance(received.item, RunEndItem):
                    return

    @checked
    def todos(self, session: UUID) -> TodoList:
        """The session's todo list: that of the last run that had one."""
        return self._connection.read(TodoList, f"{_SESSIONS}/{session}/todos")

    @checked
    def todos_of_run(self, run: UUID) -> TodoList:
        """A run's todo list: as it is now, or as it was at the end."""
        return self._connection.read(TodoList, f"{_RUNS}/{run}/todos")

    @checked
    def list_todo_events(self, run: UUID, *, after: int = 0, limit: int = 100) -> TodoEventPage:
        """What happened to the items of a run's todo list, in order. Pass the page's `next_after` as `after`."""
        return self._connection.read(TodoEventPage, f"{_RUNS}/{run}/todos/events", after=after, limit=limit)

    @checked
    def questions(
        self,
        run: UUID | None = None,
        *,
        state: QuestionStatusName | QuestionStatus | None = None,
        project: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> QuestionPage:
        """What the agents of your sessions ask, newest first, or (`run`) what one run asked, in order. Pass the page's
        `next_before` as `before` for the next page."""
        if run is not None:
            return self._connection.read(QuestionPage, f"{_RUNS}/{run}/human-loop")
        return self._connection.read(
            QuestionPage, "/api/v1/human-loop", state=state, project=project, before=before, limit=limit
        )

    @checked
    def answer(self, question_id: str, **answer: Unpack[AnswerOptions]) -> QuestionView:
        """Answer what an agent of yours asks: a question by `values` of its options or by a `text`, a permission by a
        `decision`. The same answer again changes nothing; another one raises `Conflict`."""
        with input_checked("answer()"):
            body = QuestionReplyBody.model_validate(answer)
        path = f"{_RUNS}/{_run_of(question_id)}/human-loop/{question_id}/reply"
        return self._connection.retried(lambda: self._connection.call(QuestionView, "POST", path, body))

    @checked
    def cancel(self, run: UUID) -> RunView:
        """End a run. One that a machine works on ends a moment later; what it did so far is kept. A run that has ended
        stays as it is."""
        return self._changed(RunView, f"{_RUNS}/{run}/cancel")

    @contextmanager
    def terminal(self, session: UUID, *, rows: int = 24, columns: int = 80) -> Iterator["Terminal"]:
        """Your shell in the session's sandbox; it goes on after the block. Raises `Conflict` if no sandbox runs."""
        from contextbase.sdk.blocking.terminal import open_terminal

        address, headers = self._connection.socket_of(f"{_SESSIONS}/{session}/terminal", rows=rows, columns=columns)
        with open_terminal(address, headers) as terminal:
            yield terminal

    @checked
    def stop(self, session: UUID) -> OpenedSessionView:
        """Cancel its runs, and stop its worker once its files are stored. The next message starts it again."""
        return self._changed(OpenedSessionView, f"{_SESSIONS}/{session}/stop")

    @checked
    def close(self, session: UUID) -> OpenedSessionView:
        """Stop it for good: it takes no more messages, and stays readable."""
        return self._changed(OpenedSessionView, f"{_SESSIONS}/{session}/close")

    @checked
    def pin(self, session: UUID) -> OpenedSessionView:
        """Do not stop its worker for being idle."""
        return self._changed(OpenedSessionView, f"{_SESSIONS}/{session}/pin")

    @checked
    def unpin(self, session: UUID) -> OpenedSessionView:
        """Stop its worker for being idle, as others are."""
        return self._changed(OpenedSessionView, f"{_SESSIONS}/{session}/unpin")

    @checked
    def land(self, session: UUID) -> LandingView:
        """Commit what finished runs left in the session's folder. Raises `Conflict` while a run has not ended."""
        return self._changed(LandingView, f"{_SESSIONS}/{session}/land", _LANDING_SECONDS)

    @checked
    def discard(self, session: UUID) -> LandingView:
        """Throw away what finished runs left uncommitted in the session's folder; the conversation stays. Raises
        `Conflict` while a run has not ended."""
        return self._changed(LandingView, f"{_SESSIONS}/{session}/discard", _LANDING_SECONDS)

    @checked
    def rewind(self, session: UUID, message_id: str, *, files: bool = False) -> SessionRewoundView:
        """Take the conversation back to a message: the last of the agent's that stays, or the person's that goes. With
        `files`, the uncommitted work in the session's folder goes back, too; what has landed stays in the project.
        Raises `Conflict` while a run has not ended. Not sent again when there is no answer."""
        with input_checked("rewind()"):
            body = SessionRewind(message_id=message_id, files=files)
        path = f"{_SESSIONS}/{session}/rewind"
        return self._connection.call(SessionRewoundView, "POST", path, body, read_seconds=_LANDING_SECONDS)

    @checked
    def fork(self, session: UUID, message_id: str | None = None) -> SessionView:
        """A new session that goes on from a message of this one (None: from its end). Not sent again when there is no
        answer: you might get two."""
        with input_checked("fork()"):
            body = SessionFork(message_id=message_id)
        return self._connection.call(SessionView, "POST", f"{_SESSIONS}/{session}/fork", body)

    @checked
    def snapshot(self, session: UUID) -> Generator[bytes, None, None]:
        """What is stored of the session's own files, and of its work that is not committed, as a tar file in pieces.
        Close it if you stop early (`contextlib.closing`)."""
        with self._connection.stream(f"{_SESSIONS}/{session}/snapshot") as response:
            for piece in response.iter_raw():
                yield piece

    def _changed(self, answer: type[Body], path: str, read_seconds: float = 0) -> Body:
        """Done twice, these are done once."""
        return self._connection.retried(lambda: self._connection.call(answer, "POST", path, read_seconds=read_seconds))


class Session:
    """One session. `view` is as it was when asked for; `run` is the last one that was asked for here."""

    def __init__(self, view: SessionView, sessions: Sessions) -> None:
        self.view = view
        self.id = view.id
        self.run: RunView | None = None
        self._sessions = sessions

    def send(
        self,
        message: str,
        *,
        model: str | None = None,
        profile: ProfileName | ExecutionProfile | None = None,
        provider: str | None = None,
        options: Mapping[str, Any] | None = None,
        mode: SendMode = SendMode.QUEUE,
        attachments: Sequence[Path] = (),
        key: str | None = None,
    ) -> Generator[RunItem, None, None]:
        """Send the agent a message, and yield what happens to the end of the run: the last is a `RunEndItem`. To stop
        reading does not stop the agent; `cancel` does. `mode`: while a run works, wait for its end, `steer` the working
        turn, or `interrupt` it."""
        self.run = self._sessions.send(
            self.id,
            message,
            model=model,
            profile=profile,
            provider=provider,
            options=options,
            attachments=attachments,
            mode=mode,
            key=key,
        )
        events = self._sessions.events(self.run.id)
        with closing(events):
            for received in events:
                if isinstance(received.item, RunEndItem):
                    self.run = received.item.run
                yield received.item

    def cancel(self) -> RunView:
        """End the last run that was asked for here. Raises `InvalidInput` if there was none."""
        if self.run is None:
            raise InvalidInput("cancel(): nothing was sent to the session yet.")
        return self._sessions.cancel(self.run.id)

    def todos(self) -> TodoList:
        """What the agent plans to do, and has done, as it says: the list of the last run that had one."""
        return self._sessions.todos(self.id)

    def answer(self, question_id: str, **answer: Unpack[AnswerOptions]) -> QuestionView:
        """Answer what the agent asks: a question by `values` of its options or by a `text`, a permission by a
        `decision`, `allow_once`, `allow_session` or `deny` with a `reason`."""
        return self._sessions.answer(question_id, **answer)

    def messages(self, *, before: int | None = None, limit: int = 50) -> MessagePage:
        """The newest messages, in the order they were said."""
        return self._sessions.messages(self.id, before=before, limit=limit)

    def land(self) -> LandingView:
        """Commit what finished runs left in the session's folder."""
        return self._sessions.land(self.id)

    def discard(self) -> LandingView:
        """Throw away what finished runs left uncommitted in the session's folder; the conversation stays."""
        return self._sessions.discard(self.id)

    def rewind(self, message_id: str, *, files: bool = False) -> SessionRewoundView:
        """Take the conversation back to a message: the last of the agent's that stays, or the person's that goes."""
        return self._sessions.rewind(self.id, message_id, files=files)

    def fork(self, message_id: str | None = None) -> "Session":
        """A new session that goes on from a message of this one; None: from its end."""
        return Session(self._sessions.fork(self.id, message_id), self._sessions)

    def close(self) -> None:
        """Stop it for good: it takes no more messages, and stays readable."""
        self._sessions.close(self.id)


def _run_of(question_id: str) -> UUID:
    """A question's id begins with its run's."""
    try:
        return UUID(question_id.partition(":")[0])
    except ValueError:
        raise InvalidInput(f"answer(): {question_id[:100]!r} is not the id of a question.") from None
