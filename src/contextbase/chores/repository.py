"""Who leads, and what came of the leader's chores, in the database."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from contextbase.chores.model import ChoreRun, Leader, Where
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape

__all__ = ["ChoreRepository", "DueChore", "Term"]

_SQL: Final = load_queries("contextbase.chores")
_LEADER: Final = RowShape(Leader)


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """One process's time as the leader."""

    number: int
    holder: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class DueChore:
    run: ChoreRun
    due_in: timedelta  # by the database's clock; zero: now


class ChoreRepository:
    """Every method works in the caller's transaction."""

    async def leader(self, connection: Connection) -> Leader | None:
        row = await connection.fetchrow(_SQL.leader)
        return None if row is None else _LEADER(row, since=row["taken_at"])

    async def seconds_led(self, connection: Connection) -> float:
        """How long somebody leads for certain; zero or less: the lead is free."""
        row = await connection.fetchrow(_SQL.leader)
        return 0.0 if row is None else float(row["seconds_left"])

    async def take(self, connection: Connection, holder: UUID, server: str, lease: timedelta) -> Term | None:
        """None when somebody else leads."""
        number = await connection.fetchval(_SQL.take_lead, holder, server, lease.total_seconds())
        return None if number is None else Term(number=number, holder=holder)

    async def renew(self, connection: Connection, term: Term, lease: timedelta) -> bool:
        """False when another term has begun."""
        return bool(await connection.fetchval(_SQL.renew_lead, term.number, term.holder, lease.total_seconds()))

    async def release(self, connection: Connection, term: Term) -> None:
        await connection.execute(_SQL.release_lead, term.number, term.holder)

    async def fence(self, connection: Connection, term: Term, *, longest_pause: timedelta) -> bool:
        """Whether the term goes on: then no other begins before the caller's transaction ends, or stands still for so
        long that the database ends it."""
        milliseconds = str(max(1, round(longest_pause / timedelta(milliseconds=1))))
        return await connection.fetchval(_SQL.fence, term.number, term.holder, milliseconds) is not None

    async def record(self, connection: Connection, run: ChoreRun, *, next_in: timedelta) -> None:
        await connection.execute(
            _SQL.record_run,
            run.name,
            run.server,
            run.every,
            run.started_at,
            run.ended_at,
            run.error,
            run.failures,
            next_in,
        )

    async def recorded(self, connection: Connection) -> list[DueChore]:
        """The leader's chores that have run at least once, by name."""
        return [
            DueChore(
                run=ChoreRun(
                    name=row["name"],
                    where=Where.LEADER,
                    server=row["server"],
                    every=row["every"],
                    started_at=row["started_at"],
                    ended_at=row["ended_at"],
                    error=row["error"],
                    failures=row["failures"],
                    next_at=row["next_at"],
                ),
                due_in=row["due_in"],
            )
            for row in await connection.fetch(_SQL.recorded_runs)
        ]
