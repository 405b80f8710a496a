"""Messages, tool executions and ids of events in PostgreSQL. Every method works in the caller's transaction."""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from contextbase.conversation.model import AgentMessage, MessagePart, SessionEvent, ToolExecution
from contextbase.conversation.projection import ENDS_OF_ATTEMPTS, Projection
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.vocabulary import MessagePartKind, MessageRole, MessageState, ToolStatus

__all__ = ["ConversationRepository"]

_SQL: Final = load_queries("contextbase.conversation")


class ConversationRepository:
    async def to_change(self, connection: Connection, events: Collection[SessionEvent]) -> Projection:
        """The rows that these events may change."""
        runs = list({event.run_id for event in events})
        messages = list({str(event.data["message_id"]) for event in events if "message_id" in event.data})
        tools = list({str(event.data["tool_id"]) for event in events if "tool_id" in event.data})
        is_ending = any(event.kind in ENDS_OF_ATTEMPTS for event in events)
        found, done = [], []  # most events are pieces of texts: no tool is asked for then
        if messages or is_ending:
            found = [_MESSAGE(row) for row in await connection.fetch(_SQL.messages_to_change, runs, messages)]
        if tools or is_ending:
            done = [_TOOL(row) for row in await connection.fetch(_SQL.tools_to_change, runs, tools)]
        return Projection(
            messages={(one.run_id, one.attempt, one.message_id): one for one in found},
            tools={(one.run_id, one.attempt, one.tool_id): one for one in done},
        )

    async def put(self, connection: Connection, sessions: Mapping[UUID, UUID], projection: Projection) -> None:
        """Store the rows that were changed, and remove those that are hidden. `sessions`: of the runs."""
        for cut in projection.cuts:
            hidden = (sessions[cut.run_id], list(cut.runs), cut.run_id, cut.keep)
            await connection.execute(_SQL.hide_messages, *hidden)
            await connection.execute(_SQL.hide_tools, *hidden)
        if messages := [projection.messages[key] for key in sorted(projection.changed_messages)]:
            await connection.execute(
                _SQL.put_messages,
                [sessions[one.run_id] for one in messages],
                [one.run_id for one in messages],
                [one.attempt for one in messages],
                [one.message_id for one in messages],
                [one.position for one in messages],
                [one.role for one in messages],
                [one.state for one in messages],
                [_encoded_parts(one.parts) for one in messages],
                [one.created_at for one in messages],
                [one.updated_at for one in messages],
            )
        if tools := [projection.tools[key] for key in sorted(projection.changed_tools)]:
            await connection.execute(
                _SQL.put_tools,
                [sessions[one.run_id] for one in tools],
                [one.run_id for one in tools],
                [one.attempt for one in tools],
                [one.tool_id for one in tools],
                [one.position for one in tools],
                [one.name for one in tools],
                [one.title for one in tools],
                [json.dumps(one.input) for one in tools],
                [one.status for one in tools],
                [json.dumps(one.output) for one in tools],
                [one.truncated for one in tools],
                [one.started_at for one in tools],
                [one.ended_at for one in tools],
            )

    async def messages(
        self, connection: Connection, session_id: UUID, *, run_id: UUID | None = None, after: int = 0, limit: int
    ) -> list[AgentMessage]:
        """In order, after a position."""
        return list(map(_MESSAGE, await connection.fetch(_SQL.message_page, session_id, after, run_id, limit)))

    async def newest_messages(
        self, connection: Connection, session_id: UUID, *, before: int, limit: int
    ) -> list[AgentMessage]:
        """The newest before a position, in order."""
        rows = await connection.fetch(_SQL.newest_messages, session_id, before, limit)
        return [_MESSAGE(row) for row in reversed(rows)]

    async def message(self, connection: Connection, session_id: UUID, message_id: str) -> AgentMessage | None:
        """The newest of that name, if it is not hidden."""
        row = await connection.fetchrow(_SQL.message_by_name, session_id, message_id)
        return None if row is None else _MESSAGE(row)

    async def last_position(self, connection: Connection, run_id: UUID) -> int:
        """Of all that is shown of a run; 0: nothing is."""
        return await connection.fetchval(_SQL.last_position, run_id) or 0

    async def shown(
        self, connection: Connection, session_id: UUID, *, limit: int
    ) -> tuple[list[AgentMessage], list[ToolExecution]]:
        """All that is shown of a session: the newest, up to a limit of each kind."""
        messages = [_MESSAGE(row) for row in await connection.fetch(_SQL.newest_messages, session_id, 2**62, limit)]
        tools = [_TOOL(row) for row in await connection.fetch(_SQL.newest_tools, session_id, limit)]
        return messages, tools

    async def earlier(
        self, connection: Connection, session_id: UUID, *, after: int, before: int, limit: int
    ) -> tuple[list[AgentMessage], list[ToolExecution]]:
        """What is shown of the runs between two numbers, in order: the newest, up to a limit of each kind."""
        asked = (session_id, after, before, limit)
        messages = [_MESSAGE(row) for row in await connection.fetch(_SQL.messages_of_runs, *asked)]
        tools = [_TOOL(row) for row in await connection.fetch(_SQL.tools_of_runs, *asked)]
        return messages[::-1], tools[::-1]

    async def tools(
        self, connection: Connection, session_id: UUID, run_id: UUID, *, after: int = 0, limit: int
    ) -> list[ToolExecution]:
        """In order, after a position."""
        return list(map(_TOOL, await connection.fetch(_SQL.tool_page, session_id, run_id, after, limit)))

    async def known_events(
        self, connection: Connection, names: Collection[tuple[UUID, int, int]]
    ) -> frozenset[tuple[UUID, int, int]]:
        """Which of the executors' events are stored; by run, attempt and the executor's number."""
        rows = await connection.fetch(_SQL.known_events, *_columns(names, 3))
        return frozenset((row["run_id"], row["attempt"], row["n"]) for row in rows)

    async def fold_deltas(self, connection: Connection, session_id: UUID, run_id: UUID) -> None:
        """Forget the pieces of texts that were told as a whole; what was cut off stays in its pieces."""
        await connection.execute(_SQL.fold_deltas, session_id, run_id)

    async def put_event_ids(
        self, connection: Connection, ids: Collection[tuple[UUID, int, UUID, int, int, datetime]]
    ) -> None:
        """Of each: run, attempt, session, the executor's number, the number in the stream, the executor's time."""
        await connection.execute(_SQL.insert_event_ids, *_columns(ids, 6))

    async def last_event(self, connection: Connection, run_id: UUID, attempt: int) -> int:
        """The executor's number of the newest event that is stored; 0: none is."""
        return await connection.fetchval(_SQL.last_event, run_id, attempt) or 0


def _columns(rows: Collection[tuple[object, ...]], width: int) -> list[list[object]]:
    return [[row[column] for row in rows] for column in range(width)]


def _encoded_parts(parts: Iterable[MessagePart]) -> str:
    return json.dumps(
        [
            {"kind": one.kind, "part": one.part, "text": one.text, "done": one.done, "truncated": one.truncated}
            for one in parts
        ]
    )


def _parts_from_json(stored: str) -> tuple[MessagePart, ...]:
    return tuple(_PART(part) for part in json.loads(stored))


_PART: Final = RowShape(MessagePart, kind=MessagePartKind)
_MESSAGE: Final = RowShape(AgentMessage, role=MessageRole, state=MessageState, parts=_parts_from_json)
_TOOL: Final = RowShape(ToolExecution, input=json.loads, status=ToolStatus, output=json.loads)
