"""All leases of one place, and the rules they obey. Pure: the time, and who is alive, come from the caller."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from contextbase.leases.model import Lease, LeaseHolder
from contextbase.leases.patterns import overlap

__all__ = ["Attempt", "LeaseTable"]

_HOLDER: Final = ("node", "boot", "process_id", "started")


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """How a try to acquire ended."""

    lease: Lease  # the one acquired, or one that is in the way
    is_acquired: bool
    removed: tuple[Lease, ...] = ()  # stale ones that were cleaned up


class LeaseTable:
    def __init__(self, leases: Iterable[Lease] = (), *, last_token: int = 0) -> None:
        self._leases = {lease.token: lease for lease in leases}
        self._last_token = last_token
        self.is_changed = False

    @property
    def leases(self) -> tuple[Lease, ...]:
        return tuple(self._leases.values())

    @property
    def last_token(self) -> int:
        return self._last_token

    def in_the_way(
        self, pattern: str, *, owner: str | None = None, sees: Callable[[Lease], bool] = lambda _: True
    ) -> Lease | None:
        """A lease that overlaps, and is not the owner's. What the owner does not see is not in its way either."""
        others = (lease for lease in self._leases.values() if lease.owner != owner)
        return next((lease for lease in others if overlap(lease.pattern, pattern) and sees(lease)), None)

    def attempt(
        self,
        pattern: str,
        *,
        owner: str,
        holder: LeaseHolder,
        now: datetime,
        ttl: timedelta,
        is_stale: Callable[[Lease], bool],
        sees: Callable[[Lease], bool] = lambda _: True,
    ) -> Attempt:
        """Clean up, then acquire if nothing is in the way."""
        removed = self.take_out(is_stale)
        in_the_way = self.in_the_way(pattern, owner=owner, sees=sees)
        if in_the_way is not None:
            return Attempt(lease=in_the_way, is_acquired=False, removed=removed)
        lease = self.acquire(pattern, owner=owner, holder=holder, now=now, ttl=ttl)
        return Attempt(lease=lease, is_acquired=True, removed=removed)

    def find(self, token: int, now: datetime) -> Lease | None:
        """The lease, if it is still held."""
        lease = self._leases.get(token)
        return None if lease is None or lease.is_expired(now) else lease

    def acquire(self, pattern: str, *, owner: str, holder: LeaseHolder, now: datetime, ttl: timedelta) -> Lease:
        """For when nothing is in the way. Another process of the same owner has its own: it may die alone."""
        mine = (pattern, owner, holder)
        held = (lease for lease in self._leases.values() if (lease.pattern, lease.owner, lease.holder) == mine)
        lease = next(held, None) or Lease(
            pattern=pattern,
            owner=owner,
            token=self._next_token(now),
            holder=holder,
            acquired_at=now,
            expires_at=now,
            depth=0,
        )
        self.is_changed = True
        self._leases[lease.token] = replace(lease, depth=lease.depth + 1, expires_at=now + ttl)
        return self._leases[lease.token]

    def release(self, token: int, *, times: int = 1) -> Lease | None:
        """The lease when it is gone by this; None when it was gone before, or its owner has it still."""
        lease = self._leases.get(token)
        if lease is None:
            return None
        self.is_changed = True
        if lease.depth > times:
            self._leases[token] = replace(lease, depth=lease.depth - times)
            return None
        return self._leases.pop(token)

    def renew(self, tokens: Collection[int], *, now: datetime, ttl: timedelta) -> None:
        """What has expired stays expired: whether somebody came along meanwhile must make no difference."""
        for token in tokens:
            lease = self.find(token, now)
            if lease is not None:
                self.is_changed = True
                self._leases[token] = replace(lease, expires_at=now + ttl)

    def take_out(self, is_unwanted: Callable[[Lease], bool]) -> tuple[Lease, ...]:
        taken = tuple(lease for lease in self._leases.values() if is_unwanted(lease))
        for lease in taken:
            self.is_changed = True
            del self._leases[lease.token]
        return taken

    def _next_token(self, now: datetime) -> int:
        """Never below the microseconds of the clock: a book that was lost, or fell back to an older state in a power
        cut, does not give out a token twice."""
        self._last_token = max(
            self._last_token + 1, (now - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
        )
        return self._last_token

    def to_json(self) -> str:
        leases = [
            {
                "pattern": lease.pattern,
                "owner": lease.owner,
                "token": lease.token,
                "holder": [getattr(lease.holder, name) for name in _HOLDER],
                "acquired_at": lease.acquired_at.isoformat(),
                "expires_at": lease.expires_at.isoformat(),
                "depth": lease.depth,
            }
            for lease in self._leases.values()
        ]
        return json.dumps({"last_token": self._last_token, "leases": leases})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` for what is no book."""
        read = json.loads(text)
        leases = [
            Lease(
                pattern=str(item["pattern"]),
                owner=str(item["owner"]),
                token=int(item["token"]),
                holder=LeaseHolder(**dict(zip(_HOLDER, item["holder"], strict=True))),
                acquired_at=datetime.fromisoformat(item["acquired_at"]),
                expires_at=datetime.fromisoformat(item["expires_at"]),
                depth=int(item["depth"]),
            )
            for item in read["leases"]
        ]
        return cls(leases, last_token=int(read["last_token"]))
