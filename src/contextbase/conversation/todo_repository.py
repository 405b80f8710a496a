"""Agents' todo lists in PostgreSQL. Every method works in the caller's transaction."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.agent_vocabulary import TodoChange, TodoStatus
from contextbase.conversation.model import SESSION_REWOUND, SessionEvent
from contextbase.conversation.rewind_cut import RewindCut
from contextbase.conversation.todos import TODO_EVENTS, TodoItem, TodoItemEvent, TodoRows
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape

__all__ = ["TodoRepository"]

_SQL: Final = load_queries("contextbase.conversation")
_ITEM: Final = RowShape(TodoItem, status=TodoStatus)
_EVENT: Final = RowShape(TodoItemEvent, change=TodoChange, status=TodoStatus)


class TodoRepository:
    """Also the `EventRows` of todo lists."""

    kinds = TODO_EVENTS

    async def update(self, connection: Connection, session_id: UUID, events: Sequence[SessionEvent]) -> None:
        cuts = [RewindCut.of(event) for event in events if event.kind == SESSION_REWOUND]
        runs = list({event.run_id for event in events}.union(*(cut.runs for cut in cuts)))
        found = map(_item, await connection.fetch(_SQL.todos_of_runs, runs))
        rows = TodoRows(items={(one.run_id, one.todo_id): one for one in found})
        if cuts:
            rows.history += map(_event, await connection.fetch(_SQL.todo_events_of_runs, [cut.run_id for cut in cuts]))
        rows.apply_all(events)
        for cut in rows.cuts:
            await connection.execute(_SQL.hide_todo_events, session_id, list(cut.runs), cut.run_id, cut.keep)
        gone = [key for key in sorted(rows.changed) if key not in rows.items]
        await connection.execute(_SQL.remove_todos, [run_id for run_id, _ in gone], [todo_id for _, todo_id in gone])
        changed = [rows.items[key] for key in sorted(rows.changed) if key in rows.items]
        await connection.execute(
            _SQL.put_todos,
            session_id,
            [one.run_id for one in changed],
            [one.todo_id for one in changed],
            [one.content for one in changed],
            [one.status for one in changed],
            [one.order for one in changed],
            [one.first_seen for one in changed],
            [one.created_at for one in changed],
            [one.updated_at for one in changed],
        )
        await connection.execute(
            _SQL.put_todo_events,
            session_id,
            [one.run_id for one in rows.history],
            [one.todo_id for one in rows.history],
            [one.position for one in rows.history],
            [one.change for one in rows.history],
            [one.content for one in rows.history],
            [one.status for one in rows.history],
            [one.order for one in rows.history],
            [one.ts for one in rows.history],
        )

    async def of_run(self, connection: Connection, run_id: UUID) -> list[TodoItem]:
        """The list as it is now, in its order."""
        return list(map(_item, await connection.fetch(_SQL.todos_of_runs, [run_id])))

    async def of_session(self, connection: Connection, session_id: UUID) -> list[TodoItem]:
        """The newest list of the session: that of the last run that had one."""
        return list(map(_item, await connection.fetch(_SQL.todos_of_session, session_id)))

    async def histories(self, connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, list[TodoItemEvent]]:
        """All that happened to the items of runs, in order, by run."""
        found: dict[UUID, list[TodoItemEvent]] = {}
        for one in map(_event, await connection.fetch(_SQL.todo_events_of_runs, list(run_ids))):
            found.setdefault(one.run_id, []).append(one)
        return found

    async def history(self, connection: Connection, run_id: UUID, *, after: int, limit: int) -> list[TodoItemEvent]:
        """What happened to a run's items, in order: the changes of `limit` events after a position."""
        return list(map(_event, await connection.fetch(_SQL.todo_history, run_id, after, limit)))


def _item(row: asyncpg.Record) -> TodoItem:
    return _ITEM(row, order=row["item_order"])


def _event(row: asyncpg.Record) -> TodoItemEvent:
    return _EVENT(row, order=row["item_order"])
