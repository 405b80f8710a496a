"""One call after the other, for each workspace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from contextbase.workspaces.model import WorkspaceId

__all__ = ["WorkspaceTurns"]


class WorkspaceTurns:
    """The machine is one process."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[WorkspaceId, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def alone(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        lock = self._locks.setdefault(workspace_id, asyncio.Lock())
        async with lock:
            yield
