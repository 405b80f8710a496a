"""Holding leases, wherever their book is kept: waiting, re-entrancy, heartbeats, events."""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import cache, partial
from types import TracebackType
from typing import Final, Self, TypeVar

from contextbase.errors import InvalidInput, LeaseHeld, LeaseLost, MachineProblem, Unavailable
from contextbase.identity.levels import check_pattern
from contextbase.leases.model import DEFAULT_WAIT, Lease, LeaseEvent, LeaseEventKind, LeaseHolder, Listener
from contextbase.leases.processes import is_gone, this_process
from contextbase.leases.table import Attempt, LeaseTable
from contextbase.threads import ended

__all__ = ["Pause", "TableLeases", "ended_lease", "held_lease", "stale", "waited_for"]

_log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.005
_LONGEST_OWNER: Final = 256

Result = TypeVar("Result")
Pause = Callable[[float], Awaitable[None]]
"""Returns after so many seconds, or sooner when there may be news."""


def stale(now: datetime, seen_from: LeaseHolder) -> Callable[[Lease], bool]:
    """Whether a lease has ended, as of now; each process is looked at once."""
    is_holder_gone = cache(partial(is_gone, seen_from=seen_from))
    return lambda lease: lease.is_expired(now) or is_holder_gone(lease.holder)


async def waited_for(
    attempt: Callable[[], Awaitable[Attempt]],
    *,
    seconds: float,
    pause: Pause,
    longest_pause: float,
    on_blocked: Callable[[Lease], Awaitable[None]],
    is_over: Callable[[], Awaitable[bool]] | None = None,  # whether nobody waits any more
) -> Attempt:
    """Try until there is a lease or the time is over; returns the last attempt. `on_blocked` is told once."""
    loop = asyncio.get_running_loop()
    deadline, next_pause, was_told = loop.time() + seconds, FIRST_PAUSE, False
    while True:
        tried = await attempt()
        if tried.is_acquired:
            return tried
        if not was_told:
            await on_blocked(tried.lease)
            was_told = True
        left = deadline - loop.time()
        if left <= 0:
            return tried
        await pause(min(next_pause, left))
        if is_over is not None and await is_over():
            return tried
        next_pause = min(next_pause * 2, longest_pause)


class TableLeases(ABC):
    """The port `LeaseManager` over any `LeaseTable`. Heartbeats run on the event loop that uses it: keep it free."""

    _longest_pause: float

    def __init__(self, *, ttl: timedelta, process: LeaseHolder | None, on_event: Listener | None) -> None:
        self._ttl = ttl
        self._process = process
        self._on_event = on_event
        self._held: Counter[int] = Counter()  # by token: how often it was acquired through this object
        self._beating: asyncio.Task[None] | None = None

    @abstractmethod
    async def _read(self) -> tuple[LeaseTable, datetime]:
        """The book as it is, and the time."""

    @abstractmethod
    async def _changed(self, work: Callable[[LeaseTable, datetime], Result]) -> Result:
        """Let `work` change the book while nobody else does, and write it down. Cancelled, it is done or not at all."""

    @abstractmethod
    def fenced(self, lease: Lease) -> AbstractAsyncContextManager[None]: ...

    def _pauses(self, _pattern: str) -> AbstractContextManager[Pause]:
        """How to wait for a lease, while the block lasts."""
        return nullcontext(asyncio.sleep)

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
        with self._pauses(pattern) as pause:
            tried = await waited_for(
                partial(self._attempt, pattern, owner),
                seconds=timeout,
                pause=pause,
                longest_pause=self._longest_pause,
                on_blocked=partial(self._blocked, pattern, owner),
            )
        if not tried.is_acquired:
            raise held_lease(tried.lease, wanted=pattern)
        self._tell(LeaseEventKind.ACQUIRED, tried.lease)
        return tried.lease

    async def release(self, lease: Lease) -> None:
        await self._release(lease.token, times=1)

    async def heartbeat(self) -> None:
        tokens = tuple(self._held)
        if tokens:
            await self._changed(lambda book, now: book.renew(tokens, now=now, ttl=self._ttl))

    async def is_locked(self, pattern: str) -> bool:
        return await self.locker_of(pattern) is not None

    async def locker_of(self, pattern: str) -> str | None:
        found = LeaseTable(await self.active()).in_the_way(check_pattern(pattern))
        return None if found is None else found.owner

    async def active(self) -> tuple[Lease, ...]:
        book, now = await self._read()
        is_stale = stale(now, self._me)
        return tuple(lease for lease in book.leases if not is_stale(lease))

    async def release_all(self, owner: str) -> int:
        released = await self._changed(lambda book, _: book.take_out(lambda lease: lease.owner == owner))
        for lease in released:
            self._tell(LeaseEventKind.RELEASED, lease)
        return len(released)

    async def clean(self) -> tuple[Lease, ...]:
        removed = await self._changed(lambda book, now: book.take_out(stale(now, self._me)))
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

    @property
    def _me(self) -> LeaseHolder:
        return self._process or this_process()

    async def _attempt(self, pattern: str, owner: str) -> Attempt:
        book, now = await self._read()
        found = book.in_the_way(pattern, owner=owner)
        if found is not None and not stale(now, self._me)(found):
            return Attempt(lease=found, is_acquired=False)  # those who wait do not stand in the way of those who work
        trying = asyncio.ensure_future(self._changed(partial(self._try_acquire, pattern, owner)))
        try:
            attempt = await asyncio.shield(trying)
        except asyncio.CancelledError:
            await ended(trying)
            if trying.exception() is None and trying.result().is_acquired:
                await self._release(trying.result().lease.token, times=1)  # nobody is left to do it
            raise
        self._tell_removed(attempt.removed)
        if attempt.is_acquired:
            self._held[attempt.lease.token] += 1
            self._beating = self._beating or asyncio.create_task(self._beat())
        return attempt

    def _try_acquire(self, pattern: str, owner: str, book: LeaseTable, now: datetime) -> Attempt:
        is_stale = stale(now, self._me)
        return book.attempt(pattern, owner=owner, holder=self._me, now=now, ttl=self._ttl, is_stale=is_stale)

    async def _release(self, token: int, *, times: int) -> None:
        self._held[token] -= times
        if self._held[token] <= 0:
            del self._held[token]
        released = await self._changed(lambda book, _: book.release(token, times=times))
        if released is not None:
            self._tell(LeaseEventKind.RELEASED, released)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._ttl.total_seconds() / 3)
            try:
                await self.heartbeat()
            except (MachineProblem, Unavailable) as problem:  # the next beat may succeed; if none does, they expire
                _log.warning("Leases could not be renewed: %s", problem.message)

    async def _blocked(self, pattern: str, owner: str, by: Lease) -> None:
        if self._on_event is not None:
            kind = LeaseEventKind.BLOCKED
            self._on_event(LeaseEvent(kind=kind, pattern=pattern, owner=owner, blocked_by=by.owner))

    def _tell(self, kind: LeaseEventKind, lease: Lease) -> None:
        if self._on_event is not None:
            self._on_event(LeaseEvent(kind=kind, pattern=lease.pattern, owner=lease.owner, token=lease.token))

    def _tell_removed(self, leases: tuple[Lease, ...]) -> None:
        for lease in leases:
            self._tell(LeaseEventKind.CLEANUP, lease)


def held_lease(lease: Lease, *, wanted: str) -> LeaseHeld:
    return LeaseHeld(
        f"{lease.owner} has a lease on {lease.pattern}; wait for it, or ask its owner.",
        pattern=wanted,
        held_pattern=lease.pattern,
        held_by=lease.owner,
    )


def ended_lease(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"{lease.owner}'s lease on {lease.pattern} has ended; acquire it again, and look at what changed.",
        pattern=lease.pattern,
        token=lease.token,
    )
