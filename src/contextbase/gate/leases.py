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

__all__ = ["ActiveLease", "LeaseBoard", "Reservations", "lease_lost"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveLease:
    token: int
    pattern: str
    owner: str  # a principal may have several workers, each with a name
    principal: Principal


class LeaseBoard(Protocol):
    """Who is on what. Asked only where a policy makes leases binding, or a commit names one."""

    async def held(self, connection: Connection, project_id: ProjectId) -> tuple[ActiveLease, ...]:
        """The project's leases that have not ended, by token. Nobody is given one while somebody has the lock on the
        project's head: to whoever asks then, the answer holds until that transaction ends."""
        ...


class Reservations:
    """Where leases bind: where a rule says so, and their owner may write."""

    def __init__(self, policy: ProjectPolicy, leases: Sequence[tuple[ActiveLease, PathAuthority]] = ()) -> None:
        self._policy = policy
        self._leases = leases

    def __bool__(self) -> bool:
        return bool(self._leases)

    def in_the_way(
        self, places: Iterable[TreePath], *, of: PrincipalId, token: int | None
    ) -> tuple[TreePath, ActiveLease] | None:
        """The first of these places that somebody else has reserved, and the lease. Who names a lease by its token is
        that lease's owner; who does not may be any of the principal's workers."""
        named = next((lease.owner for lease, _ in self._leases if lease.token == token), None)
        for place in filter(self._policy.leases_bind, places):
            for lease, authority in self._leases:
                is_own = lease.principal.id == of and named in (None, lease.owner)
                if not is_own and matches(lease.pattern, place) and authority.level(place) >= Level.READ_ADD:
                    return place, lease
        return None


def lease_lost(token: int | None) -> LeaseLost:
    return LeaseLost(
        "The lease that the commit depends on has ended, or is not yours; nothing was changed. Acquire it again, and "
        "look at what changed meanwhile.",
        token=token,
    )
