"""What every implementation of leases guarantees; tests/contracts/test_leases.py holds them to it."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from contextbase.leases.model import DEFAULT_WAIT, Lease

__all__ = ["LeaseManager"]


class LeaseManager(Protocol):
    """Leases advise: they keep out whoever asks, not whoever writes without asking. What must not happen late is done
    inside `fenced`. A lease ends with its release, its holder's death, or its TTL when no heartbeat renewed it."""

    async def acquire(self, pattern: str, *, owner: str, timeout: float = DEFAULT_WAIT) -> Lease:  # noqa: ASYNC109 - the time that belongs in the error, and 0 means: try
        """Wait until nobody else has a lease that overlaps, `timeout` seconds at the most (0: try once); then raise
        `LeaseHeld`. What the owner has already is no obstacle: the same pattern again is the same lease, one deeper,
        and needs one more release. `InvalidInput` when the pattern is none."""
        ...

    async def release(self, lease: Lease) -> None:
        """Harmless when it was lost meanwhile."""
        ...

    def fenced(self, lease: Lease) -> AbstractAsyncContextManager[None]:
        """While the block runs nobody can be given what the lease is about; `LeaseLost` when it is no longer held, or
        has expired. Keep it short, and ask for no leases in it: all others wait."""
        ...

    async def heartbeat(self) -> None:
        """Renew what was acquired through this object. Happens by itself every third of the TTL."""
        ...

    async def is_locked(self, pattern: str) -> bool: ...

    async def locker_of(self, pattern: str) -> str | None:
        """The owner of a lease that overlaps; None when there is none."""
        ...

    async def active(self) -> tuple[Lease, ...]:
        """All that are held now, by anybody, oldest first."""
        ...

    async def release_all(self, owner: str) -> int:
        """How many the owner had; whoever acquired them, at whatever depth."""
        ...

    async def clean(self) -> tuple[Lease, ...]:
        """Remove those of dead holders and those that expired, as every acquire does, too."""
        ...

    async def close(self) -> None:
        """Release what was acquired through this object, and stop its heartbeat."""
        ...
