"""Leases, as a part of the clients: `client.leases`, and `client.lease(…)` for a block that holds one."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from uuid import uuid4

from contextbase.errors import ContextbaseError, LeaseHeld, Unavailable
from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.waiting import repeated
from contextbase.sdk.arguments import checked
from contextbase.sdk.handles import HeldLease
from contextbase.wire.lease import (
    LONGEST_WAIT_SECONDS,
    LeaseAcquire,
    LeaseCheck,
    LeaseHeartbeat,
    LeasePage,
    LeasesReleased,
    LeaseView,
)

__all__ = ["DEFAULT_WAIT_SECONDS", "AsyncLeases"]

_log = logging.getLogger(__name__)

_LEASES: Final = "/api/v1/leases"
_ONE_REQUEST_SECONDS: Final = LONGEST_WAIT_SECONDS / 2  # proxies like short requests
_ANSWER_SECONDS: Final = 15.0
DEFAULT_WAIT_SECONDS: Final = 300.0


class AsyncLeases:
    """A lease says "I am working on these files". It advises others, unless a policy makes it binding."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def acquire(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> LeaseView:
        """Reserve a path or pattern. Raises `LeaseHeld` if others keep it for longer than `wait` seconds. It lasts for
        its `ttl_seconds` unless you renew it: `client.lease` does that for you."""
        deadline, key = time.monotonic() + wait, uuid4().hex
        while True:
            left = max(0.0, deadline - time.monotonic())
            body = LeaseAcquire(
                project=project, pattern=pattern, worker=worker, wait=min(left, _ONE_REQUEST_SECONDS), key=key
            )
            try:
                return await self._connection.retried(partial(self._ask, body))
            except LeaseHeld:
                if time.monotonic() >= deadline:
                    raise

    async def _ask(self, body: LeaseAcquire) -> LeaseView:
        return await self._connection.call(LeaseView, "POST", _LEASES, body, read_seconds=body.wait + _ANSWER_SECONDS)

    @asynccontextmanager
    async def holding(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> AsyncIterator[HeldLease]:
        """Acquire a lease for a block, renew it meanwhile, and release it afterwards. Raises `LeaseHeld` as `acquire`
        does."""
        view = await self.acquire(project, pattern, wait=wait, worker=worker)
        lease = HeldLease(view)
        renew = partial(self._renew, project, lease)
        try:
            async with repeated(renew, every_seconds=view.ttl_seconds / 3, name=f"lease-{lease.token}"):
                yield lease
        finally:
            try:
                await self.release(project, lease.token)
            except Unavailable as problem:  # it ends by itself, and the block's own outcome matters more
                _log.warning("the lease on %s was not released: %s", lease.pattern, problem.message)

    async def _renew(self, project: str, lease: HeldLease) -> bool:
        """False: it is lost for good."""
        asked_at = time.monotonic()
        try:
            await self.heartbeat(project, lease.token)
        except Unavailable as problem:  # the next one may be heard; if none is, it counts as lost
            _log.warning("the lease on %s was not renewed: %s", lease.pattern, problem.message)
        except ContextbaseError as refusal:
            lease.note_refused()
            _log.warning("the lease on %s was lost: %s", lease.pattern, refusal.message)
            return False
        else:
            lease.note_renewed(asked_at)
        return True

    @checked
    async def heartbeat(self, project: str, token: int) -> LeaseView:
        """Renew a lease; raises `LeaseLost` when it is not yours any more."""
        body = LeaseHeartbeat(project=project)
        return await self._connection.call(LeaseView, "POST", f"{_LEASES}/{token}/heartbeat", body)

    @checked
    async def release(self, project: str, token: int) -> None:
        """End a lease; also succeeds when it has ended."""
        await self._connection.retried(lambda: self._connection.done("DELETE", f"{_LEASES}/{token}", project=project))

    @checked
    async def release_all(self, project: str, *, owner: str | None = None) -> LeasesReleased:
        """End all leases of an owner and its workers: yours, or with 'admin' anybody's."""
        return await self._connection.call(LeasesReleased, "DELETE", _LEASES, project=project, owner=owner)

    @checked
    async def list(
        self, project: str, *, owner: str | None = None, path: str | None = None, after: int = 0, limit: int = 100
    ) -> LeasePage:
        """Who works on what, oldest first: of an owner, or what overlaps with a path or pattern. Pass the page's
        `next_after` as `after` for the next page."""
        return await self._connection.read(
            LeasePage, _LEASES, project=project, owner=owner, path=path, after=after, limit=limit
        )

    @checked
    async def check(self, project: str, path: str) -> LeaseCheck:
        """Whether somebody has a lease that overlaps with a path or pattern, and who."""
        found = (await self.list(project, path=path, limit=1)).leases
        return LeaseCheck(path=path, locked=bool(found), lease=found[0] if found else None)
