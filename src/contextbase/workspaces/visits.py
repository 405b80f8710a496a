"""Looking into an open workspace's folder from outside, without being in the way of whoever wants to end it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from contextbase.errors import Conflict
from contextbase.workspaces.model import WorkspaceId

__all__ = ["Visits"]

_PATIENCE_SECONDS: Final = 10.0


class Visits:
    """A mount cannot be taken down while somebody has something open in it. So visitors are counted: whoever takes it
    down keeps new ones out, and waits for those who are in. The machine is one process."""

    def __init__(self) -> None:
        self._inside: Counter[WorkspaceId] = Counter()
        self._shut: set[WorkspaceId] = set()
        self._moved = asyncio.Event()

    @asynccontextmanager
    async def entered(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """Once nobody keeps visitors out. Look up the workspace inside: it may have ended meanwhile."""
        await self._wait(lambda: workspace_id not in self._shut)
        self._inside[workspace_id] += 1
        try:
            yield
        finally:
            self._inside -= Counter({workspace_id: 1})
            self._tell()

    @asynccontextmanager
    async def kept_out(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """Nobody is inside until the block ends; `Conflict` if a visitor stays too long. For one caller at a time."""
        self._shut.add(workspace_id)
        try:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await self._wait(lambda: workspace_id not in self._inside)
            except TimeoutError:
                raise Conflict(
                    "A file of this workspace is being read or written at the moment, by a download or an upload. "
                    "Try again when that is done."
                ) from None
            yield
        finally:
            self._shut.discard(workspace_id)
            self._tell()

    async def _wait(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self._moved.wait()

    def _tell(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
