"""What a lease is, and what happens to leases."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

__all__ = ["DEFAULT_TTL", "DEFAULT_WAIT", "Lease", "LeaseEvent", "LeaseEventKind", "LeaseHolder", "Listener"]

DEFAULT_TTL: Final = timedelta(minutes=5)
DEFAULT_WAIT: Final = 300.0
"""Seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseHolder:
    """The process that holds a lease, so that its death can be told from the number being used again."""

    node: str  # the machine and its process numbers: a container has its own
    boot: str  # this run of the machine
    process_id: int
    started: int  # when the process started, in a unit of the node's own


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    pattern: str  # a path, or a pattern such as src/**
    owner: str  # whoever uses the name: give each worker its own
    token: int  # larger than every token given out before in the same place
    holder: LeaseHolder
    acquired_at: datetime
    expires_at: datetime
    depth: int = 1  # how often its owner has acquired it, and not released it yet

    def is_expired(self, now: datetime) -> bool:
        return now >= self.expires_at


class LeaseEventKind(StrEnum):
    ACQUIRED = "acquired"
    RELEASED = "released"
    BLOCKED = "blocked"  # told once per acquire that has to wait
    CLEANUP = "cleanup"  # a lease of a dead owner, or one that had expired, was removed


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseEvent:
    kind: LeaseEventKind
    pattern: str
    owner: str  # of a blocked one: who waits
    token: int | None = None  # a blocked one has none
    blocked_by: str = ""  # the owner of the lease in the way


Listener = Callable[[LeaseEvent], None]
"""Called where the lease is used, after the fact; it must not raise."""
