"""The leases of a project in PostgreSQL. Every method works in the caller's transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.errors import NotFound
from contextbase.gate.leases import ActiveLease
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId, ProjectId
from contextbase.leases.model import Lease, LeaseHolder
from contextbase.leases.table import LeaseTable

__all__ = ["LeaseRepository", "OpenedBook"]

_SQL: Final = load_queries("contextbase.leases")
_HOLDER: Final = RowShape(LeaseHolder)
_LEASE: Final = RowShape(Lease)
_ACTIVE: Final = RowShape(ActiveLease)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedBook:
    book: LeaseTable
    now: datetime  # by the database's clock: servers and clients may have others


class LeaseRepository:
    async def lock(self, connection: Connection, project_id: ProjectId) -> None:
        """Nobody else changes the project's leases until the transaction ends; raises `NotFound`."""
        if await connection.fetchrow(_SQL.lock_leases, project_id) is None:
            await connection.execute(_SQL.insert_lease_head, project_id)
            if await connection.fetchrow(_SQL.lock_leases, project_id) is None:
                raise NotFound(f"There is no project {project_id}.")

    async def book(self, connection: Connection, project_id: ProjectId) -> OpenedBook:
        rows = await connection.fetch(_SQL.leases, project_id)
        leases = [_lease(row) for row in rows if row["token"] is not None]
        return OpenedBook(book=LeaseTable(leases, last_token=rows[0]["last_token"]), now=rows[0]["now"])

    async def save(
        self,
        connection: Connection,
        project_id: ProjectId,
        before: dict[int, Lease],
        book: LeaseTable,
        *,
        by: PrincipalId,  # whose the new ones are
    ) -> None:
        """Make the rows what the book says, where it differs from what it said before."""
        after = {lease.token: lease for lease in book.leases}
        changed = [lease for lease in after.values() if before.get(lease.token) != lease]
        if changed:
            await connection.execute(
                _SQL.put_leases,
                project_id,
                by,
                book.last_token,
                [lease.token for lease in changed],
                [lease.pattern for lease in changed],
                [lease.owner for lease in changed],
                [lease.holder.node for lease in changed],
                [lease.holder.boot for lease in changed],
                [lease.holder.process_id for lease in changed],
                [lease.holder.started for lease in changed],
                [lease.acquired_at for lease in changed],
                [lease.expires_at for lease in changed],
                [lease.depth for lease in changed],
            )
        gone = [token for token in before if token not in after]
        if gone:
            await connection.execute(_SQL.delete_leases, project_id, gone)

    async def held(self, connection: Connection, project_id: ProjectId) -> tuple[ActiveLease, ...]:
        """The gate's `LeaseBoard`."""
        return tuple(
            _ACTIVE(row, principal=Principal.of_row(row))
            for row in await connection.fetch(_SQL.held_leases, project_id)
        )


def _lease(row: asyncpg.Record) -> Lease:
    return _LEASE(row, holder=_HOLDER(row))
