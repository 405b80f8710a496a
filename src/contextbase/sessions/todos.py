"""Agents' todo lists, for the people they work for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from contextbase.conversation.todo_repository import TodoRepository
from contextbase.conversation.todos import TodoItem, TodoItemEvent
from contextbase.db.database import Database
from contextbase.identity.model import Caller
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.model import RunId, SessionId

__all__ = ["TodoService"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoService:
    database: Database
    access: SessionAccess
    todos: TodoRepository = field(default_factory=TodoRepository)

    async def of_run(self, caller: Caller, run_id: RunId) -> Sequence[TodoItem]:
        """The list as it is now, in its order; as it was last, of a run that has ended."""
        async with self.database.transaction() as connection:
            await self.access.opened_run(connection, caller, run_id)
            return await self.todos.of_run(connection, run_id)

    async def of_session(self, caller: Caller, session_id: SessionId) -> Sequence[TodoItem]:
        """The newest list: that of the last run that had one."""
        async with self.database.transaction() as connection:
            await self.access.opened(connection, caller, session_id)
            return await self.todos.of_session(connection, session_id)

    async def history(
        self, caller: Caller, run_id: RunId, *, after: int = 0, limit: int = 100
    ) -> Sequence[TodoItemEvent]:
        """What happened to the run's items, in order: all changes of `limit` events after a position."""
        async with self.database.transaction() as connection:
            await self.access.opened_run(connection, caller, run_id)
            return await self.todos.history(connection, run_id, after=after, limit=limit)
