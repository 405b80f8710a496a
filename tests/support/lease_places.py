"""Places to keep leases in, one per implementation, each with a clock that the test moves."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from contextbase.leases import FolderLeases, LeaseEvent, Leases

__all__ = ["IMPLEMENTATIONS", "MovedClock", "Place"]


class MovedClock:
    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def move(self, by: timedelta) -> None:
        self._now += by


class Connect(Protocol):
    def __call__(self, *, on_event: Callable[[LeaseEvent], None] | None = None) -> Leases: ...


@dataclass(frozen=True, kw_only=True)
class Place:
    clock: MovedClock
    connect: Connect


@asynccontextmanager
async def folder_place(folder: Path) -> AsyncIterator[Place]:
    clock = MovedClock()
    async with AsyncExitStack() as stack:

        def connect(*, on_event: Callable[[LeaseEvent], None] | None = None) -> Leases:
            leases = FolderLeases(folder, clock=clock, on_event=on_event)
            stack.push_async_callback(leases.close)
            return leases

        yield Place(clock=clock, connect=connect)


IMPLEMENTATIONS: dict[str, Callable[[Path], AbstractAsyncContextManager[Place]]] = {"folder": folder_place}
