"""Leases in a plain folder, for any number of processes and threads of one machine.

<folder>/lock         the operating system's lock around each step: it ends with the process, so none is left behind
<folder>/leases.json  the book: replaced as a whole, and read without the lock by those who only look

Nothing is flushed to the disk: a power cut ends all holders, and tokens do not depend on the book alone (see book.py).
A book that cannot be read, an empty one say, is one without leases.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar

from contextbase.errors import InvalidInput, LeaseHeld, LeaseLost, MachineProblem
from contextbase.identity.levels import check_pattern
from contextbase.ids import Clock, SystemClock
from contextbase.leases.book import Book
from contextbase.leases.model import DEFAULT_TTL, DEFAULT_WAIT, Holder, Lease, LeaseEvent, LeaseEventKind, Listener
from contextbase.leases.processes import is_gone, this_process
from contextbase.storage.blobs.disk import explained
from contextbase.storage.blobs.waiting import ended
from contextbase.workspaces.locks import file_lock

__all__ = ["FolderLeases"]

_log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.1
_LONGEST_OWNER: Final = 256

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(kw_only=True, slots=True)
class _Attempt:
    lease: Lease | None = None
    in_the_way: Lease | None = None
    removed: tuple[Lease, ...] = ()


class FolderLeases:
    """Use it from one event loop; heartbeats need that loop to be free now and then."""

    def __init__(
        self,
        folder: Path,
        *,
        ttl: timedelta = DEFAULT_TTL,
        clock: Clock | None = None,
        process: Holder | None = None,
        on_event: Listener | None = None,
    ) -> None:
        self._folder = folder
        self._ttl = ttl
        self._clock = clock or SystemClock()
        self._process = process
        self._on_event = on_event
        self._held: Counter[int] = Counter()  # by token: how often it was acquired through this object
        self._beating: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="contextbase-leases")
        with explained(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def acquire(self, pattern: str, *, owner: str, timeout: float = DEFAULT_WAIT) -> Lease:  # noqa: ASYNC109 - see the port
        pattern = check_pattern(pattern)
        if not 0 < len(owner) <= _LONGEST_OWNER:
            raise InvalidInput(f"An owner's name has 1 to {_LONGEST_OWNER} characters.")
        loop = asyncio.get_running_loop()
        deadline, pause, has_waited = loop.time() + timeout, _FIRST_PAUSE, False
        while True:
            attempt = await self._attempt(pattern, owner)
            if attempt.lease is not None:
                self._tell(LeaseEventKind.ACQUIRED, attempt.lease)
                return attempt.lease
            assert attempt.in_the_way is not None, "an attempt ends one way or the other"  # noqa: S101 - for mypy
            blocked_by = attempt.in_the_way.owner
            if not has_waited:
                self._tell_blocked(pattern, owner, blocked_by)
                has_waited = True
            left = deadline - loop.time()
            if left <= 0:
                raise LeaseHeld(
                    f"{blocked_by} has a lease on {attempt.in_the_way.pattern}; wait for it, or ask its owner.",
                    pattern=pattern,
                    held_pattern=attempt.in_the_way.pattern,
                    held_by=blocked_by,
                )
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def release(self, lease: Lease) -> None:
        await self._release(lease.token, times=1)

    @asynccontextmanager
    async def fenced(self, lease: Lease) -> AsyncIterator[None]:
        with ExitStack() as stack:
            await self._in_thread(self._enter_fence, stack, lease)
            yield

    async def heartbeat(self) -> None:
        tokens = tuple(self._held)
        if tokens:
            await self._in_thread(self._change, lambda book: book.renew(tokens, now=self._clock.now(), ttl=self._ttl))

    async def is_locked(self, pattern: str) -> bool:
        return await self.locker_of(pattern) is not None

    async def locker_of(self, pattern: str) -> str | None:
        book = Book(await self.active())
        found = book.in_the_way(check_pattern(pattern))
        return None if found is None else found.owner

    async def active(self) -> tuple[Lease, ...]:
        return await self._in_thread(self._active)

    async def release_all(self, owner: str) -> int:
        released = await self._in_thread(self._take_out, lambda lease: lease.owner == owner)
        for lease in released:
            del self._held[lease.token]
            self._tell(LeaseEventKind.RELEASED, lease)
        return len(released)

    async def clean(self) -> tuple[Lease, ...]:
        removed = await self._in_thread(self._take_out, self._stale())
        self._tell_removed(removed)
        return removed

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None
        for token, times in list(self._held.items()):
            await self._release(token, times=times)
        self._thread.shutdown(wait=False)

    @property
    def _lock(self) -> Path:
        return self._folder / "lock"

    @property
    def _me(self) -> Holder:
        return self._process or this_process()

    async def _in_thread(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Wait for its end even when cancelled. In a thread of our own: who waits for the folder's lock must not keep
        the threads from others that everybody shares, or a fenced block that needs one would never end."""
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._thread, partial(function, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await ended(work)
            raise

    def _enter_fence(self, stack: ExitStack, lease: Lease) -> None:
        with explained(self._folder):
            stack.enter_context(file_lock(self._lock))
        if self._read().find(lease.token, self._clock.now()) is None:
            raise LeaseLost(
                f"{lease.owner}'s lease on {lease.pattern} has ended; acquire it again, and look at what changed.",
                pattern=lease.pattern,
                token=lease.token,
            )

    async def _attempt(self, pattern: str, owner: str) -> _Attempt:
        attempt = _Attempt()
        try:
            await self._in_thread(self._try_acquire, pattern, owner, attempt)
        except asyncio.CancelledError:
            if attempt.lease is not None:  # nobody is left to release it
                await self._release(attempt.lease.token, times=1)
            raise
        self._tell_removed(attempt.removed)
        if attempt.lease is not None:
            self._held[attempt.lease.token] += 1
            self._beating = self._beating or asyncio.create_task(self._beat())
        return attempt

    def _try_acquire(self, pattern: str, owner: str, attempt: _Attempt) -> None:
        found = self._read().in_the_way(pattern, owner=owner)
        if found is not None and not self._stale()(found):
            attempt.in_the_way = found  # those who wait do not stand in the way of those who work
            return
        with self._changing() as book:
            attempt.removed = book.take_out(self._stale())
            attempt.in_the_way = book.in_the_way(pattern, owner=owner)
            if attempt.in_the_way is None:
                attempt.lease = book.acquire(
                    pattern, owner=owner, holder=self._me, now=self._clock.now(), ttl=self._ttl
                )

    async def _release(self, token: int, *, times: int) -> None:
        self._held[token] -= times
        if self._held[token] <= 0:
            del self._held[token]
        released = await self._in_thread(self._change, lambda book: book.release(token, times=times))
        if released is not None:
            self._tell(LeaseEventKind.RELEASED, released)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._ttl.total_seconds() / 3)
            try:
                await self.heartbeat()
            except MachineProblem as problem:  # the next beat may succeed; if none does, the leases expire
                _log.warning("Leases could not be renewed: %s", problem.message)

    def _stale(self) -> Callable[[Lease], bool]:
        """Whether a lease has ended, as of now; each process is looked at once."""
        now, is_holder_gone = self._clock.now(), cache(partial(is_gone, seen_from=self._me))
        return lambda lease: lease.is_expired(now) or is_holder_gone(lease.holder)

    def _active(self) -> tuple[Lease, ...]:
        is_stale = self._stale()
        return tuple(lease for lease in self._read().leases if not is_stale(lease))

    def _take_out(self, is_unwanted: Callable[[Lease], bool]) -> tuple[Lease, ...]:
        with self._changing() as book:
            return book.take_out(is_unwanted)

    def _change(self, work: Callable[[Book], Result]) -> Result:
        with self._changing() as book:
            return work(book)

    @contextmanager
    def _changing(self) -> Iterator[Book]:
        """The book, to be written down when the block ends."""
        with explained(self._folder), file_lock(self._lock):
            book = self._read()
            yield book
            if book.is_changed:
                draft = self._folder / "leases.json.draft"
                draft.write_text(book.to_json(), encoding="utf-8")
                draft.replace(self._folder / "leases.json")

    def _read(self) -> Book:
        with explained(self._folder):
            try:
                return Book.from_json((self._folder / "leases.json").read_text(encoding="utf-8"))
            except FileNotFoundError:
                return Book()
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                _log.warning("%s holds no leases that can be read (%s); starting anew.", self._folder, error)
                return Book()

    def _tell(self, kind: LeaseEventKind, lease: Lease) -> None:
        if self._on_event is not None:
            now = self._clock.now()
            self._on_event(LeaseEvent(kind=kind, pattern=lease.pattern, owner=lease.owner, token=lease.token, at=now))

    def _tell_removed(self, leases: tuple[Lease, ...]) -> None:
        for lease in leases:
            self._tell(LeaseEventKind.CLEANUP, lease)

    def _tell_blocked(self, pattern: str, owner: str, blocked_by: str) -> None:
        if self._on_event is not None:
            kind, now = LeaseEventKind.BLOCKED, self._clock.now()
            self._on_event(LeaseEvent(kind=kind, pattern=pattern, owner=owner, at=now, blocked_by=blocked_by))
