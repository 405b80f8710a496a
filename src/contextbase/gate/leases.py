"""What leases mean to the gate: a commit may name one that it depends on, and a policy makes them bind others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from contextbase.db.database import Connection
from contextbase.errors import LeaseLost
from contextbase.gate.policy import ProjectPolicy
from contextbase.identity.levels import Level, PathAuthority, matches
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId, ProjectId, TreePath

__all__ = ["HeldLease", "LeaseBoard", "Reservations", "Writer", "lease_lost"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldLease:
    token: int
    pattern: str
    owner: str  # a principal may have several workers, each with a name
    principal: Principal


class LeaseBoard(Protocol):
    """Who is on what. Asked only where a policy makes leases binding, or a commit names one."""

    async def held(self, connection: Connection, project_id: ProjectId) -> tuple[HeldLease, ...]:
        """The project's leases that have not ended, by token. Nobody is given one while somebody has the lock on the
        project's head: to whoever asks then, the answer holds until that transaction ends."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """For whom a commit is made; without a worker's name, for every worker of the principal."""

    principal_id: PrincipalId
    owner: str | None = None

    def has(self, lease: HeldLease) -> bool:
        return lease.principal.id == self.principal_id and self.owner in (None, lease.owner)


class Reservations:
    """Where leases bind: where a rule says so, and their owner may write."""

    def __init__(self, policy: ProjectPolicy, leases: Sequence[tuple[HeldLease, PathAuthority]] = ()) -> None:
        self._policy = policy
        self._leases = leases

    def in_the_way(self, writer: Writer, places: Iterable[TreePath]) -> tuple[TreePath, HeldLease] | None:
        """The first of these places that somebody else has reserved, and the lease."""
        if not self._leases:
            return None
        for place in filter(self._policy.leases_bind, places):
            for lease, authority in self._leases:
                if not writer.has(lease) and matches(lease.pattern, place) and authority.level(place) >= Level.READ_ADD:
                    return place, lease
        return None



def lease_lost(token: int) -> LeaseLost:
    return LeaseLost(
        "The lease that the commit depends on has ended, or is not yours; nothing was changed. Acquire it again, and "
        "look at what changed meanwhile.",
        token=token,
    )
