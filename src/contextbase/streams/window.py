"""What is new in a scope, read once per process and shared by all who follow it there."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from contextbase.errors import ContextbaseError, NotFound
from contextbase.streams.model import Scope
from contextbase.streams.notifier import Notifier

__all__ = ["TICK_SECONDS", "SharedWindows", "Window", "WindowOwner"]

_log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
TICK_SECONDS: Final = 1.0


class Window(ABC):
    """Follows a scope while `run` runs: looks at every hint, and every second without one."""

    def __init__(self, *, scope: Scope, notifier: Notifier) -> None:
        self._scope = scope
        self._notifier = notifier
        self._hinted = asyncio.Event()
        self._moved = asyncio.Event()
        self._wakers: list[Callable[[], None]] = []
        self._tick = asyncio.get_running_loop().call_later(TICK_SECONDS, self.wake)
        self._gone: NotFound | None = None

    @abstractmethod
    async def _advance(self) -> bool:
        """Take in what is new and `wake`; True when there is more of it. Raises `NotFound` once the scope is gone."""

    async def moved(self) -> None:
        """Return when there is something new, when the window is woken, and at least every `TICK_SECONDS`."""
        await self._moved.wait()

    @contextmanager
    def waking(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call back whenever `moved` would return: for readers of several windows."""
        self._wakers.append(callback)
        try:
            yield
        finally:
            self._wakers.remove(callback)

    def wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        for callback in self._wakers:
            callback()
        # One timer for all readers is much cheaper than one for each wait of each of them.
        self._tick.cancel()
        if self._gone is None:
            self._tick = asyncio.get_running_loop().call_later(TICK_SECONDS, self.wake)

    async def run(self) -> None:
        try:
            await self._follow()
        finally:
            self._tick.cancel()

    async def _follow(self) -> None:
        with self._notifier.subscribed(self._scope, self._hinted.set):
            while self._gone is None:
                self._hinted.clear()
                try:
                    while await self._advance():
                        pass
                except NotFound as error:
                    self._gone = error
                    self.wake()
                except ContextbaseError as error:
                    _log.warning("a stream cannot be read now; trying again", extra={"code": error.code})
                except Exception:  # noqa: BLE001 - followers wait for this task: it must not end
                    _log.exception("a stream could not be read; trying again")
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._hinted.wait()


AnyWindow = TypeVar("AnyWindow", bound=Window)


@dataclass(slots=True)
class _Followed(Generic[AnyWindow]):
    window: AnyWindow
    task: "asyncio.Task[None]"
    followers: int = 0


class SharedWindows(Generic[AnyWindow]):
    """One window for each scope that somebody in this process follows."""

    def __init__(self, make: Callable[[Scope], AnyWindow]) -> None:
        self._make = make
        self._followed: dict[Scope, _Followed[AnyWindow]] = {}
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def scopes(self) -> frozenset[Scope]:
        """Those that somebody follows."""
        return frozenset(self._followed)

    def end(self) -> None:
        """Wake every follower and let none wait again: the server stops."""
        self._ended = True
        for followed in self._followed.values():
            followed.window.wake()

    @asynccontextmanager
    async def opened(self, scope: Scope) -> AsyncIterator[AnyWindow]:
        """Share the scope's window while the block lasts."""
        followed = self._followed.get(scope)
        if followed is None:
            window = self._make(scope)
            followed = _Followed(window, asyncio.create_task(window.run(), name=f"stream-{scope}"))
            self._followed[scope] = followed
        followed.followers += 1
        try:
            yield followed.window
        finally:
            followed.followers -= 1
            if followed.followers == 0:
                del self._followed[scope]
                followed.task.cancel()
                with suppress(asyncio.CancelledError):
                    await followed.task


class WindowOwner(Generic[AnyWindow]):
    """A service whose readers share windows."""

    _windows: SharedWindows[AnyWindow]

    @property
    def followed(self) -> frozenset[Scope]:
        return self._windows.scopes

    @property
    def ended(self) -> bool:
        return self._windows.ended

    def end(self) -> None:
        """Wake every follower and let none wait again: the server stops."""
        self._windows.end()
