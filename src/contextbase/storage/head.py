"""Moves a project's head. Only the gate imports this (import-linter holds it): it is the one write door."""

from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import BlobMissing, Conflict, NotFound
from contextbase.ids import ProjectId, Seq
from contextbase.storage.landing import HeadState, Landing

__all__ = ["AnsweredBefore", "HeadRepository"]

_SQL: Final = load_queries("contextbase.storage")
_KEEP_BLOBS: Final = ("versions_keep_their_blob", "versions_keep_what_was_sent", "side_versions_keep_their_blob")


class AnsweredBefore(Exception):
    """A request of the landing happened before: look for its answer."""


class HeadRepository:
    async def lock(self, connection: Connection, project_id: ProjectId) -> HeadState:
        """The head, held until the transaction ends; raises `NotFound`."""
        row = await connection.fetchrow(_SQL.lock_head, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return _head(row)

    async def read(self, connection: Connection, project_id: ProjectId) -> HeadState:
        """The head as it is, without holding it: to be compared with what `lock` says later."""
        row = await connection.fetchrow(_SQL.read_head, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return _head(row)

    async def has_commit(self, connection: Connection, project_id: ProjectId, commit_id: UUID) -> bool:
        """Whether a commit whose outcome is unknown happened; waits for a writer that may still be about to commit."""
        await connection.execute(_SQL.wait_for_writers, project_id)
        return await connection.fetchrow(_SQL.commit_by_id, commit_id) is not None

    async def land(self, connection: Connection, landing: Landing) -> bool:
        """Write all of it and move the head, in one statement that needs no transaction around it.

        False, and nothing is done, if the head or the audit chain is not where it was taken to be, or a content of the
        landing is being collected or was purged. The schema's constraints have the last word: a path taken twice, a gap
        in a chain or a version replaced twice raises `Conflict`; a version whose blob is not stored `BlobMissing`; a
        request that was answered before `AnsweredBefore`.
        """
        try:
            return bool(await connection.fetchval(_SQL.land, *landing.arguments()))
        except asyncpg.ForeignKeyViolationError as error:
            if error.constraint_name in _KEEP_BLOBS:
                raise BlobMissing("A version names a blob that is not stored; upload it first.") from error
            raise _rule_broken(error) from error
        except asyncpg.UniqueViolationError as error:
            if error.table_name == "answered_requests":
                raise AnsweredBefore from error
            raise _rule_broken(error) from error
        except asyncpg.IntegrityConstraintViolationError as error:
            raise _rule_broken(error) from error


def _rule_broken(error: asyncpg.IntegrityConstraintViolationError) -> Conflict:
    return Conflict(f"The commit breaks a rule of the tree: {error.constraint_name}.")


def _head(row: asyncpg.Record) -> HeadState:
    return HeadState(
        seq=Seq(row["head"]),
        epoch=row["epoch"],
        policy_version=row["policy_version"],
        commit_id=row["commit_id"],
    )
