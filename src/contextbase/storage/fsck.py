"""Verifies what is stored: C2, C3, C8 and every blob's bytes. Reads only; safe while the server writes."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Damaged, MachineProblem
from contextbase.ids import ContentHash
from contextbase.storage.blobs.ports import BlobStore

__all__ = ["Fsck", "FsckProblem", "FsckStep"]

_SQL: Final = load_queries("contextbase.storage")
_PAGE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class FsckProblem:
    """One damaged thing."""

    rule: str  # "C2", "C3", "C8", "event" or "blob"
    where: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FsckStep:
    """Progress, or a problem found on the way."""

    stage: str
    done: int = 0
    total: int | None = None
    problem: FsckProblem | None = None


class Fsck:
    def __init__(self, *, database: Database, store: BlobStore, audit: AuditRepository) -> None:
        self._database = database
        self._store = store
        self._audit = audit

    async def run(self) -> AsyncIterator[FsckStep]:
        """Check everything; every problem is a step, and so is progress."""
        # One snapshot of the database, so that what the server commits meanwhile cannot look like damage.
        async with self._database.transaction(isolation="repeatable_read", readonly=True) as connection:
            for stage, problems in (
                ("commits", self._commits(connection)),
                ("versions", self._versions(connection)),
                ("events", self._events(connection)),
                ("audit", self._audit_chains(connection)),
            ):
                yield FsckStep(stage=stage)
                async for step in problems:
                    yield step
        async for step in self._blobs():
            yield step

    async def _commits(self, connection: Connection) -> AsyncIterator[FsckStep]:
        for row in await connection.fetch(_SQL.check_projects):
            yield _found(
                "commits", "C2", f"project {row['name']}",
                f"its head is {row['head']}, but it has {row['commits']} commits and the last is {row['last']}",
            )  # fmt: skip

    async def _versions(self, connection: Connection) -> AsyncIterator[FsckStep]:
        for row in await connection.fetch(_SQL.check_chains, timeout=3600):
            yield _found(
                "versions", "C3", _place(row["project_id"], row["path"]),
                f"the version chain of node {row['node_id']} is broken at number {row['number']}",
            )  # fmt: skip
        for row in await connection.fetch(_SQL.check_paths, timeout=3600):
            message = f"two nodes were at this path at seq {row['seq']}"
            yield _found("versions", "C3", _place(row["project_id"], row["path"]), message)
        for row in await connection.fetch(_SQL.check_folders, timeout=3600):
            message = f"it is a file, but {row['below']} lies below it"
            yield _found("versions", "C3", _place(row["project_id"], row["path"]), message)
        for row in await connection.fetch(_SQL.check_nodes, timeout=3600):
            message = f"node {row['id']} has no version of commit {row['created_seq']}, which made it"
            yield _found("versions", "C3", f"project {row['project_id']}", message)
        for row in await connection.fetch(_SQL.check_side_versions, timeout=3600):
            message = f"side version {row['id']} has no blob of its size"
            yield _found("versions", "C3", _place(row["project_id"], row["path"]), message)
        for row in await connection.fetch(_SQL.check_versions_have_commits, timeout=3600):
            wrong = [
                sentence
                for column, sentence in (
                    ("no_commit", "has no commit"),
                    ("no_node", "has no node"),
                    ("no_blob", "names a blob that is not recorded"),
                    ("other_size", "has another size than its blob"),
                )
                if row[column]
            ]
            message = f"version {row['number']} {' and '.join(wrong)}"
            yield _found("versions", "C3", _place(row["project_id"], row["path"]), message)

    async def _events(self, connection: Connection) -> AsyncIterator[FsckStep]:
        for row in await connection.fetch(_SQL.check_event_numbers, timeout=3600):
            message = f"its last event is {row['last']}, but its counter is at {row['head'] or 0}"
            yield _found("events", "event", f"{row['scope_kind']} {row['scope_id']}", message)
        for row in await connection.fetch(_SQL.check_event_bodies, timeout=3600):
            message = f"event {row['number']} has no blob of its size"
            yield _found("events", "event", f"{row['scope_kind']} {row['scope_id']}", message)

    async def _audit_chains(self, connection: Connection) -> AsyncIterator[FsckStep]:
        async for chain, number, problem in self._audit.verify(connection):
            if problem is None:
                yield FsckStep(stage="audit", done=number)
            else:
                yield _found("audit", "C8", "system" if chain.int == 0 else f"project {chain}", problem)
        for row in await connection.fetch(_SQL.check_commits_have_audit, timeout=3600):
            yield _found("audit", "C8", f"project {row['project_id']}", f"commit {row['seq']} has no audit row")
        for row in await connection.fetch(_SQL.check_projects_and_chains):
            message = "it has an audit chain, but was removed" if row["no_project"] else "its audit chain was removed"
            yield _found("audit", "C8", f"project {row['project_id']}", message)
        for row in await connection.fetch(_SQL.check_tokens_have_audit, timeout=3600):
            message = f"token {row['id']} ('{row['name']}') was made without an audit row, or the row was removed"
            yield _found("audit", "C8", "system", message)

    async def _blobs(self) -> AsyncIterator[FsckStep]:
        async with self._database.connection() as connection:
            total = await connection.fetchval(_SQL.count_blobs)
        done, last = 0, b""
        while True:
            async with self._database.connection() as connection:
                rows = await connection.fetch(_SQL.blob_page, last, _PAGE)
            for row in rows:
                content_hash = ContentHash(row["hash"])
                has_bytes = row["live"] and not row["purged"]  # a tombstone has none
                problem = await self._check_blob(content_hash, row["size"]) if has_bytes else None
                done += 1
                yield FsckStep(stage="blobs", done=done, total=max(total, done), problem=problem)
            if len(rows) < _PAGE:
                return
            last = rows[-1]["hash"]

    async def _check_blob(self, content_hash: ContentHash, size: int) -> FsckProblem | None:
        try:
            stored = await self._store.verify(content_hash)
        except (Damaged, MachineProblem) as error:  # one that the disk does not give back must not hide the others
            # GC may have removed it since we read the row; then it is no longer live, or no longer there.
            async with self._database.connection() as connection:
                row = await connection.fetchrow(_SQL.blob_row, content_hash)
            if row is None or not row["live"]:
                return None
            return FsckProblem(rule="blob", where=str(content_hash), message=error.message)
        if stored != size:
            return FsckProblem(rule="blob", where=str(content_hash), message=f"has {stored} bytes; its row says {size}")
        return None


def _found(stage: str, rule: str, where: str, message: str) -> FsckStep:
    return FsckStep(stage=stage, problem=FsckProblem(rule=rule, where=where, message=message))


def _place(project_id: UUID, path: str) -> str:
    return f"project {project_id}, {path}"
