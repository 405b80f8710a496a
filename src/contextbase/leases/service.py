"""Leases as the interfaces know them: those of a caller that may be anywhere, and is kept alive by its heartbeats."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final
from uuid import uuid4

from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, InvalidInput, LeaseHeld, LeaseLost
from contextbase.gate.service import Gate
from contextbase.identity.levels import PathAuthority, check_pattern
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock, ProjectId
from contextbase.leases.held_leases import held_lease, stale, waited_for
from contextbase.leases.model import DEFAULT_TTL, Lease, LeaseHolder
from contextbase.leases.patterns import overlap
from contextbase.leases.postgres import LONGEST_PAUSE
from contextbase.leases.store import LeaseStore
from contextbase.leases.table import Attempt, LeaseTable
from contextbase.leases.visibility import place, require_writable, sees, sees_both, shown

__all__ = ["LeaseService"]

MOST_LEASES: Final = 5_000
_WORKER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    pattern: str
    owner: str
    holder: LeaseHolder
    authority: PathAuthority

    def sees(self, lease: Lease) -> bool:
        return sees_both(self.authority, lease.pattern, self.pattern)


@dataclass(kw_only=True, slots=True)
class LeaseService:
    """An owner is a principal, `agent:indexer`, or one of its workers, `agent:indexer/3`. What is given out about
    leases is cut to what the caller may see."""

    database: Database
    gate: Gate
    books: LeaseStore
    audit: AuditRepository
    clock: Clock
    ttl: timedelta = DEFAULT_TTL
    _ended: bool = field(init=False, default=False)

    async def acquire(
        self,
        caller: Caller,
        project_id: ProjectId,
        pattern: str,
        *,
        worker: str | None = None,
        wait: float = 0,
        key: str | None = None,
        is_gone: Callable[[], Awaitable[bool]] | None = None,
    ) -> Lease:
        """A lease of its own for each call; with a key, for each key: asked for again, it is the same one, renewed.

        Waits up to `wait` seconds, unless the caller `is_gone` meanwhile; then raises `LeaseHeld`. `Forbidden` where
        the caller may not write."""
        caller.require(Action.WRITE, project_id)
        pattern, owner = check_pattern(pattern), _owner(caller, worker)
        authority = await self._authority(caller, project_id)
        require_writable(authority, pattern)

        async def is_over() -> bool:
            return self._ended or (is_gone is not None and await is_gone())

        asked = _Asked(
            pattern=pattern,
            owner=owner,
            holder=LeaseHolder(node="", boot=key or uuid4().hex, process_id=0, started=0),
            authority=authority,
        )
        with self.books.pauses(project_id, pattern) as pause:
            tried = await waited_for(
                partial(self._attempt, caller, project_id, asked),
                seconds=wait,
                pause=pause,
                longest_pause=LONGEST_PAUSE,
                on_blocked=lambda lease: self.books.tell_blocked(
                    project_id, pattern, owner=owner, by=caller.principal.id, in_the_way=lease
                ),
                is_over=is_over,
            )
        if not tried.is_acquired and not caller.may_read:
            raise LeaseHeld(f"Somebody else has a lease that overlaps with {pattern}; wait for it.", pattern=pattern)
        if not tried.is_acquired:
            raise held_lease(replace(tried.lease, pattern=shown(authority, tried.lease.pattern)), wanted=pattern)
        return tried.lease

    async def heartbeat(self, caller: Caller, project_id: ProjectId, token: int) -> Lease:
        """Renew a lease; raises `LeaseLost` when the caller does not hold it any more."""
        caller.require(Action.WRITE, project_id)

        def renew(book: LeaseTable, now: datetime) -> Lease | None:
            lease = book.find(token, now)
            if lease is None or not _is_of(lease, _owner(caller)):
                return None
            book.renew([token], now=now, ttl=self.ttl)
            return book.find(token, now)

        renewed = await self.books.change(project_id, renew, by=caller.principal.id)
        if renewed is None:
            raise LeaseLost(
                "The lease has ended, or is not yours; acquire it again, and look at what changed meanwhile.",
                token=token,
            )
        return renewed

    async def release(self, caller: Caller, project_id: ProjectId, token: int) -> None:
        """End a lease; harmless when it has ended. Somebody else's takes 'admin'."""
        caller.require(Action.WRITE, project_id)
        authority = await self._authority(caller, project_id)
        book = (await self.books.read(project_id)).book
        found = next((lease for lease in book.leases if lease.token == token), None)
        is_own = found is not None and _is_of(found, _owner(caller))
        if found is None or not (is_own or sees(authority, found.pattern)):
            return
        if not is_own and not caller.administers(project_id):
            whose = f"{found.owner}'s" if caller.may_read else "somebody else's"
            raise Forbidden(f"The lease is {whose}: ending it needs a token that allows 'admin'.")
        await self._release(caller, project_id, lambda lease: lease.token == token)

    async def release_all(self, caller: Caller, project_id: ProjectId, owner: str | None = None) -> int:
        """End every lease of an owner, with those of its workers; the caller's own, or with 'admin' anybody's."""
        caller.require(Action.WRITE, project_id)
        own = _owner(caller)
        wanted = own if owner is None else owner
        is_own = wanted == own or wanted.startswith(f"{own}/")
        if not is_own and not caller.administers(project_id):
            raise Forbidden(f"Ending the leases of {wanted[:120]} needs a token that allows 'admin'.")
        authority = await self._authority(caller, project_id)

        def is_meant(lease: Lease) -> bool:
            return _is_of(lease, wanted) and (is_own or sees(authority, lease.pattern))

        return await self._release(caller, project_id, is_meant)

    async def page(
        self,
        caller: Caller,
        project_id: ProjectId,
        *,
        owner: str | None = None,
        pattern: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Lease]:
        """Leases after a token, oldest first: of an owner and its workers, or that overlap with a pattern."""
        caller.require(Action.READ, project_id)
        asked = None if pattern is None else check_pattern(pattern)
        authority = await self._authority(caller, project_id)
        opened = await self.books.read(project_id)
        is_stale = stale(opened.now, self.books.process)

        def is_meant(lease: Lease) -> bool:
            if lease.token <= after or is_stale(lease) or (owner is not None and not _is_of(lease, owner)):
                return False
            if asked is None:
                return sees(authority, lease.pattern)
            return overlap(lease.pattern, asked) and sees_both(authority, lease.pattern, asked)

        found = islice(filter(is_meant, opened.book.leases), limit)
        return [replace(lease, pattern=shown(authority, lease.pattern)) for lease in found]

    def end(self) -> None:
        """Send home who waits: the server stops."""
        self._ended = True

    async def _attempt(self, caller: Caller, project_id: ProjectId, asked: "_Asked") -> Attempt:
        opened = await self.books.read(project_id)
        found = opened.book.in_the_way(asked.pattern, owner=asked.owner, sees=asked.sees)
        if found is not None and not stale(opened.now, self.books.process)(found):
            return Attempt(lease=found, is_acquired=False)
        return await self.books.change(project_id, partial(self._try_acquire, asked), by=caller.principal.id)

    def _try_acquire(self, asked: "_Asked", book: LeaseTable, now: datetime) -> Attempt:
        is_stale = stale(now, self.books.process)
        if sum(not is_stale(lease) for lease in book.leases) >= MOST_LEASES:
            raise Conflict(f"A project has at most {MOST_LEASES} leases; reserve folders, or release some.")
        return book.attempt(
            asked.pattern,
            owner=asked.owner,
            holder=asked.holder,
            now=now,
            ttl=self.ttl,
            is_stale=is_stale,
            sees=asked.sees,
        )

    async def _release(
        self,
        caller: Caller,
        project_id: ProjectId,
        is_meant: Callable[[Lease], bool],
    ) -> int:
        released = await self.books.change(project_id, lambda book, _: book.take_out(is_meant), by=caller.principal.id)
        taken = [lease for lease in released if not _is_of(lease, _owner(caller))]
        if taken:
            async with self.database.transaction() as connection:
                entries = [self._entry(caller, lease) for lease in taken]
                await self.audit.append(connection, project_id, entries)
        return len(released)

    async def _authority(self, caller: Caller, project_id: ProjectId) -> PathAuthority:
        async with self.database.connection() as connection:
            return await self.gate.authority(connection, caller, project_id)

    def _entry(self, caller: Caller, lease: Lease) -> AuditEntry:
        return AuditEntry(
            at=self.clock.now(),
            by=caller.actor,
            action="lease.release",
            summary=f"{caller.principal.name} ended {lease.owner}'s lease.",
            path=place(lease.pattern),
            details={"pattern": lease.pattern, "owner": lease.owner, "token": lease.token},
        )


def _owner(caller: Caller, worker: str | None = None) -> str:
    if worker is not None and not _WORKER.fullmatch(worker):
        raise InvalidInput("A worker's name has 1 to 100 letters, digits or ._@- and starts with a letter or digit.")
    name = str(caller.principal)
    return name if worker is None else f"{name}/{worker}"


def _is_of(lease: Lease, owner: str) -> bool:
    return lease.owner == owner or lease.owner.startswith(f"{owner}/")
