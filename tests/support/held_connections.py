"""Notices whoever takes a second connection of a pool while it holds one: enough of them at once wait for each other.

A `Database.session()` may be held meanwhile: it is for locks that outlast statements, and there are few of those.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from unittest.mock import patch
from weakref import WeakKeyDictionary

import contextbase
from contextbase.db import database as database_module
from contextbase.db.database import Connection, Database

__all__ = ["second_connections_noticed"]

_OURS = str(Path(contextbase.__file__).parent)
_DATABASE = database_module.__file__


def _taken_by() -> str | None:
    """The place in the package that asks, None if a test does; and `session` for what holds one for long."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == _DATABASE and frame.f_code.co_name == "session":
            return "session"
        if name.startswith(_OURS) and name != _DATABASE:
            return f"{name}:{frame.f_lineno}"
        if "/tests/" in name and not name.endswith("held_connections.py"):
            return None
        frame = frame.f_back  # type: ignore[assignment]  # None ends it
    return None


@contextmanager
def second_connections_noticed() -> Iterator[list[str]]:
    """The list gets a line for each, from what the package does in one task."""
    found: list[str] = []
    held: WeakKeyDictionary[asyncio.Task[object], list[tuple[object, str]]] = WeakKeyDictionary()
    real = Database.connection

    @asynccontextmanager
    async def connection(self: Database) -> AsyncIterator[Connection]:
        task, place = asyncio.current_task(), _taken_by()
        if task is None or place is None or place == "session":
            async with real(self) as connection:
                yield connection
            return
        mine = held.setdefault(task, [])
        found.extend(f"{place} while {other} has one" for pool, other in mine if pool is self._pool)
        mine.append((self._pool, place))
        try:
            async with real(self) as connection:
                yield connection
        finally:
            mine.remove((self._pool, place))

    with patch.object(Database, "connection", connection):
        yield found
