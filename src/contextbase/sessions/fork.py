"""A new session that goes on from a message of another: with what was said until then, what the agent program knew, and
the work that was not committed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import MESSAGE_USER, RUN_STATE, AgentMessage, ToolExecution
from contextbase.conversation.repository import ConversationRepository
from contextbase.conversation.todo_repository import TodoRepository
from contextbase.conversation.todos import TODO_SNAPSHOT, TodoItemEvent, list_after
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict
from contextbase.identity.model import Caller
from contextbase.ids import new_uuid
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.app_forks import AppForks
from contextbase.sessions.conversation_point import ConversationPoint, ConversationPoints
from contextbase.sessions.model import AgentRun, AgentSession, RunId, SessionId, SessionRequest
from contextbase.sessions.rewind_repository import RewindRepository
from contextbase.sessions.service import SessionService
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.states import ENDED
from contextbase.vocabulary import MessagePartKind, MessageRole, ToolStatus

__all__ = ["SessionForks"]

_MOST_ROWS: Final = 20_000
_KINDS: Final = {MessagePartKind.TEXT: "message.done", MessagePartKind.REASONING: "reasoning.done"}
_LONGEST_TITLE: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionForks:
    database: Database
    access: SessionAccess
    service: SessionService
    runs: AgentRuns
    log: ConversationLog
    apps: AppForks
    conversation: ConversationRepository = field(default_factory=ConversationRepository)
    todos: TodoRepository = field(default_factory=TodoRepository)
    rewinds: RewindRepository = field(default_factory=RewindRepository)
    snapshots: SnapshotRepository = field(default_factory=SnapshotRepository)
    points: ConversationPoints = field(default_factory=ConversationPoints)

    async def fork(self, caller: Caller, session_id: SessionId, message_id: str | None = None) -> AgentSession:
        """A session of the caller's own with the same place, agent and options, that knows what was said up to the
        message (None: until now). The session itself stays as it is. `Conflict` for a message of a run that has not
        ended."""
        async with self.database.transaction() as connection:
            session = await self.access.owned(connection, caller, session_id)
            point = await self._point(connection, session_id, message_id)
            runs = [] if point is None else await self.rewinds.runs_until(connection, session_id, point.last_number)
            if any(run.state not in ENDED for run in runs):
                raise Conflict("The run of this message has not ended. Wait for its end, or name an earlier message.")
            messages, tools = await self.conversation.shown(connection, session_id, limit=_MOST_ROWS)
            todos = await self.todos.histories(connection, [run.id for run in runs])
        copies = {run.id: RunId(new_uuid()) for run in runs}
        events = await self.log.prepared(list(self._events(point, runs, copies, [*messages, *tools], todos)))
        app = None if session.app is None else await self.apps.prepare(caller, session)
        async with self.database.transaction() as connection:
            request, own_id = _request(session), None
            if app is not None:
                request, own_id = replace(request, folder=app.folder), app.session_id
            made = await self.service.add(
                connection, caller, request, session.actions, session_id=own_id, forked_from=session_id
            )
            if app is not None:
                kind = replace(made, workspace_kind=session.workspace_kind)
                await self.apps.finish(connection, caller, app, kind)
            await self.rewinds.copy_runs(connection, made.id, copies)
            snapshot = None if point is None else point.snapshot
            if snapshot is not None and (snapshot := await self.snapshots.get(connection, snapshot.id)) is not None:
                run_id = None if snapshot.run_id is None else copies.get(snapshot.run_id)
                base = None if app is None else app.base
                await self.snapshots.copy(connection, snapshot, made.id, run_id, base=base)
            last_run = runs[-1].number if runs else 0
            await self.rewinds.become_fork(connection, made.id, of=session_id, last_run=last_run, snapshot=snapshot)
            await self.log.append(connection, made.id, events)
            made = await self.access.owned(connection, caller, made.id)
        self.log.hint(made.id)
        return made

    async def _point(
        self, connection: Connection, session_id: SessionId, message_id: str | None
    ) -> ConversationPoint | None:
        if message_id is None:
            return await self.points.end(connection, session_id)
        return await self.points.named(connection, session_id, message_id)

    def _events(
        self,
        point: ConversationPoint | None,
        runs: Sequence[AgentRun],
        copies: Mapping[RunId, RunId],
        everything: Sequence[AgentMessage | ToolExecution],
        todos: Mapping[UUID, Sequence[TodoItemEvent]],
    ) -> Iterator[LoggedEvent]:
        """What is shown of the runs, said once more, whole."""
        rows: dict[UUID, list[AgentMessage | ToolExecution]] = {}
        for row in sorted(everything, key=lambda row: row.position):
            rows.setdefault(row.run_id, []).append(row)
        for run in runs:
            keep = point.keep if point is not None and run.id == point.run.id else None
            for row in rows.get(run.id, ()):
                if keep is not None and row.position > keep:
                    continue
                for event in _said(row, copies) if isinstance(row, AgentMessage) else _done(row):
                    yield replace(event, run_id=copies[run.id])
            ended = self.runs.state_event(run)
            if listed := list_after(todos.get(run.id, ()), keep):
                yield replace(ended, kind=TODO_SNAPSHOT, run_id=copies[run.id], ts=listed[-1].ts, data=_listed(listed))
            yield replace(ended, kind=RUN_STATE, run_id=copies[run.id], ts=run.ended_at or ended.ts)


def _request(session: AgentSession) -> SessionRequest:
    return SessionRequest(
        project_id=session.project_id,
        folder=session.folder,
        provider=session.provider,
        model=session.model,
        land=session.land,
        title=f"{session.title} (fork)"[:_LONGEST_TITLE] if session.title else "",
        options=session.options,
    )


def _said(message: AgentMessage, copies: Mapping[RunId, RunId]) -> Iterator[LoggedEvent]:
    name, run_id = message.message_id, RunId(message.run_id)
    if name.startswith(f"{run_id}:"):
        name = f"{copies[run_id]}{name.removeprefix(str(run_id))}"
    about: dict[str, object] = {"message_id": name}
    if message.role is MessageRole.USER:
        yield _event(MESSAGE_USER, message, about | {"text": message.text})
        return
    for part in message.parts:
        yield _event(_KINDS[part.kind], message, about | {"part": part.part, "text": part.text})
    yield _event("message.stop", message, about)


def _done(tool: ToolExecution) -> Iterator[LoggedEvent]:
    about: dict[str, object] = {"tool_id": tool.tool_id}
    yield _event("tool.start", tool, about | {"name": tool.name, "title": tool.title, "input": dict(tool.input)})
    if tool.status in (ToolStatus.OK, ToolStatus.ERROR):
        end = {"status": str(tool.status), "output": tool.output, "truncated": tool.truncated}
        yield replace(_event("tool.end", tool, about | end), ts=tool.ended_at or tool.started_at)


def _listed(items: Sequence[TodoItemEvent]) -> dict[str, object]:
    return {
        "todos": [
            {"todo_id": one.todo_id, "content": one.content, "status": str(one.status), "order": one.order}
            for one in items
        ]
    }


def _event(kind: str, row: AgentMessage | ToolExecution, data: dict[str, object]) -> LoggedEvent:
    ts = row.created_at if isinstance(row, AgentMessage) else row.started_at
    return LoggedEvent(kind=kind, run_id=row.run_id, attempt=row.attempt, ts=ts, data=data)
