"""A chore, its last run, and who leads."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

__all__ = ["Chore", "ChoreRun", "Leader", "Where"]


class Where(StrEnum):
    LEADER = "leader"  # on one of a database's servers: it decides, and writes down what shall be
    MACHINE = "machine"  # on each machine: it brings its own folders and sandboxes in line with that


@dataclass(frozen=True, kw_only=True, slots=True)
class Chore:
    """`run` is called alone: never twice at the same time on one machine, or for a leader's chore on one database. It
    may be cancelled at any moment, and whatever it does must bear being done again."""

    name: str
    every: timedelta  # from the end of a run to the start of the next one
    run: Callable[[], Awaitable[object]]
    where: Where
    at_most: timedelta = timedelta(hours=1)  # a run that takes longer is cancelled, and counts as failed
    backs_off: bool = True  # after failures the next run waits ever longer; a sign of life must not


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoreRun:
    """What came of a chore's last run."""

    name: str
    where: Where
    server: str  # which ran it
    every: timedelta
    started_at: datetime
    ended_at: datetime
    error: str | None
    failures: int  # in a row
    next_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Leader:
    server: str
    since: datetime
    term: int  # grows with each new leader
    expires_at: datetime
    is_alive: bool  # the lease has not expired
