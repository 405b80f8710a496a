"""Moves a project's head. Only the gate imports this (import-linter holds it): it is the one write door."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import BlobMissing, Conflict, NotFound
from contextbase.ids import ProjectId, Seq
from contextbase.storage.model import NewCommit

__all__ = ["HeadRepository", "LockedHead"]

_SQL: Final = load_queries("contextbase.storage")


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedHead:
    seq: Seq
    epoch: UUID
    policy_version: int
    commit_id: UUID | None  # of its last commit: two futures may give one number to different commits


class HeadRepository:
    async def lock(self, connection: Connection, project_id: ProjectId) -> LockedHead:
        """The head, held until the transaction ends; raises `NotFound`."""
        row = await connection.fetchrow(_SQL.lock_head, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return _head(row)

    async def read(self, connection: Connection, project_id: ProjectId) -> LockedHead:
        """The head as it is, without holding it: to be compared with what `lock` says later."""
        row = await connection.fetchrow(_SQL.read_head, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return _head(row)

    async def has_commit(self, connection: Connection, project_id: ProjectId, commit_id: UUID) -> bool:
        """Whether a commit whose outcome is unknown happened; waits for a writer that may still be about to commit."""
        await connection.execute(_SQL.wait_for_writers, project_id)
        return await connection.fetchrow(_SQL.commit_by_id, commit_id) is not None

    async def append(
        self, connection: Connection, project_id: ProjectId, head: LockedHead, commits: Sequence[NewCommit]
    ) -> Seq:
        """Add commits after the locked head, in order, and move the head to the last; returns it.

        The schema's constraints have the last word: a path taken twice, a gap in a chain or a version replaced twice
        raises `Conflict`; a version whose blob is not stored, or just being collected, raises `BlobMissing`.
        """
        seqs = [Seq(head.seq + offset) for offset in range(1, len(commits) + 1)]
        placed = [(seq, version) for seq, commit in zip(seqs, commits, strict=True) for version in commit.versions]
        made = [(seq, version) for seq, version in placed if version.number == 1]
        # Within one batch a node may be written again and again: all but its last version are replaced on arrival.
        replaced_by = {(version.node_id, version.number - 1): seq for seq, version in placed}
        here = {(version.node_id, version.number) for _, version in placed}
        ended = {key: seq for key, seq in replaced_by.items() if key[1] > 0 and key not in here}
        versions = [version for _, version in placed]
        last = seqs[-1] if seqs else head.seq
        try:
            done = await connection.execute(
                _SQL.append_commits,
                project_id,
                seqs,
                [commit.id for commit in commits],
                [commit.principal_id for commit in commits],
                [str(commit.operator_type) for commit in commits],
                [commit.message for commit in commits],
                [commit.run for commit in commits],
                [version.node_id for _, version in made],
                [seq for seq, _ in made],
                last,
                [node_id for node_id, _ in ended],
                [number for _, number in ended],
                list(ended.values()),
                [version.node_id for version in versions],
                [version.number for version in versions],
                [seq for seq, _ in placed],
                [replaced_by.get((version.node_id, version.number)) for version in versions],
                [str(version.path) for version in versions],
                [str(version.kind) for version in versions],
                [version.content_hash for version in versions],
                [version.size for version in versions],
                [version.executable for version in versions],
                [version.mime for version in versions],
                [version.base_number for version in versions],
                [version.merged_number for version in versions],
                [version.sent_hash for version in versions],
            )
        except asyncpg.ForeignKeyViolationError as error:
            if error.constraint_name in ("versions_keep_their_blob", "versions_keep_what_was_sent"):
                raise BlobMissing("A version names a blob that is not stored; upload it first.") from error
            raise Conflict(f"The commit breaks a rule of the tree: {error.constraint_name}.") from error
        except asyncpg.IntegrityConstraintViolationError as error:
            raise Conflict(f"The commit breaks a rule of the tree: {error.constraint_name}.") from error
        if done != f"INSERT 0 {len(versions)}":
            raise Conflict("A version to be replaced is not its node's head any more.")
        return last


def _head(row: asyncpg.Record) -> LockedHead:
    return LockedHead(
        seq=Seq(row["head"]),
        epoch=row["epoch"],
        policy_version=row["policy_version"],
        commit_id=row["commit_id"],
    )
