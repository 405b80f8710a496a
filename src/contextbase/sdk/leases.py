"""Leases, as a part of the clients: `client.leases`, and `client.lease(…)` for a block that holds one."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Final
from uuid import uuid4

from contextbase.errors import ContextbaseError, LeaseHeld, LeaseLost, Unavailable
from contextbase.sdk.arguments import checked, documented_like
from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.wire.lease import (
    LONGEST_WAIT_SECONDS,
    LeaseAcquire,
    LeaseCheck,
    LeaseHeartbeat,
    LeasePage,
    LeasesReleased,
    LeaseView,
)

__all__ = ["DEFAULT_WAIT_SECONDS", "AsyncLeases", "HeldLease", "Leases"]

_log = logging.getLogger(__name__)

_LEASES: Final = "/api/v1/leases"
_ONE_REQUEST_SECONDS: Final = LONGEST_WAIT_SECONDS / 2  # proxies like short requests
_ANSWER_SECONDS: Final = 15.0
DEFAULT_WAIT_SECONDS: Final = 300.0


class HeldLease:
    """A lease that is renewed in the background. Pass its `token` to commits that must not come too late."""

    def __init__(self, view: LeaseView) -> None:
        self.token = view.token
        self.pattern = view.pattern
        self.owner = view.owner
        self._ttl_seconds = view.ttl_seconds
        self._renewed_at = time.monotonic()
        self._is_refused = False

    @property
    def is_lost(self) -> bool:
        """Whether it may have gone to somebody else by now."""
        return self._is_refused or time.monotonic() - self._renewed_at >= self._ttl_seconds

    def check(self) -> None:
        """Raise `LeaseLost` if it may have gone to somebody else."""
        if self.is_lost:
            raise LeaseLost(
                f"The lease on {self.pattern} was lost; acquire it again, and look at what changed meanwhile.",
                token=self.token,
            )

    async def keep(self, leases: "AsyncLeases", project: str) -> None:
        """Renew it until it is lost."""
        while not self._is_refused:
            await asyncio.sleep(self._ttl_seconds / 3)
            asked_at = time.monotonic()
            try:
                await leases.heartbeat(project, self.token)
            except Unavailable as problem:  # the next one may be heard; if none is, it counts as lost
                _log.warning("the lease on %s was not renewed: %s", self.pattern, problem.message)
            except ContextbaseError as refusal:  # it has ended, or is not to be had any more
                self._is_refused = True
                _log.warning("the lease on %s was lost: %s", self.pattern, refusal.message)
            else:
                self._renewed_at = asked_at


class AsyncLeases:
    """A lease says "I am working on these files". It advises others, unless a policy makes it binding."""

    def __init__(self, connection: Connection) -> None:
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
        lease = HeldLease(await self.acquire(project, pattern, wait=wait, worker=worker))
        keeping = asyncio.create_task(lease.keep(self, project), name=f"lease-{lease.token}")
        try:
            yield lease
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            try:
                await self.release(project, lease.token)
            except Unavailable as problem:  # it ends by itself, and the block's own outcome matters more
                _log.warning("the lease on %s was not released: %s", lease.pattern, problem.message)

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
        return await self._connection.call(
            LeasePage, "GET", _LEASES, project=project, owner=owner, path=path, after=after, limit=limit
        )

    @checked
    async def check(self, project: str, path: str) -> LeaseCheck:
        """Whether somebody has a lease that overlaps with a path or pattern, and who."""
        found = (await self.list(project, path=path, limit=1)).leases
        return LeaseCheck(path=path, locked=bool(found), lease=found[0] if found else None)


@documented_like(AsyncLeases)
class Leases:
    """`AsyncLeases` for code that is not async."""

    def __init__(self, leases: AsyncLeases, portal: Portal) -> None:
        self._leases = leases
        self._portal = portal

    def acquire(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> LeaseView:
        return self._portal.run(self._leases.acquire(project, pattern, wait=wait, worker=worker))

    @contextmanager
    def holding(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> Iterator[HeldLease]:
        holding = self._leases.holding(project, pattern, wait=wait, worker=worker)
        with self._portal.entered(holding) as lease:
            yield lease

    def heartbeat(self, project: str, token: int) -> LeaseView:
        return self._portal.run(self._leases.heartbeat(project, token))

    def release(self, project: str, token: int) -> None:
        self._portal.run(self._leases.release(project, token))

    def release_all(self, project: str, *, owner: str | None = None) -> LeasesReleased:
        return self._portal.run(self._leases.release_all(project, owner=owner))

    def list(
        self, project: str, *, owner: str | None = None, path: str | None = None, after: int = 0, limit: int = 100
    ) -> LeasePage:
        return self._portal.run(self._leases.list(project, owner=owner, path=path, after=after, limit=limit))

    def check(self, project: str, path: str) -> LeaseCheck:
        return self._portal.run(self._leases.check(project, path))
