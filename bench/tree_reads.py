"""How long it takes to list a folder and to compare neighbouring snapshots, in projects of growing size."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Final

from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.model import WayIn
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.db.migrations.runner import migrate
from contextbase.identity.model import PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ContentHash, NodeId, PrincipalId, ProjectId, Seq, TreePath, new_uuid
from contextbase.storage.head import HeadRepository
from contextbase.storage.landing import Landing
from contextbase.storage.model import Kind, NewCommit, NewVersion
from contextbase.storage.tree import TreeRepository

__all__ = ["measure_tree_reads"]

SIZES: Final = (1_000, 100_000, 1_000_000)
_CONTENT: Final = ContentHash.of(b"content")
_ROUNDS: Final = 30
_CHANGES: Final = 10
_FOLDER: Final = TreePath("d0/e0")  # has 100 files, whatever the size


async def measure_tree_reads(folder: Path) -> dict[str, dict[str, float]]:
    """Median milliseconds by project size; `folder` must be reachable for the embedded PostgreSQL."""
    server = EmbeddedPostgres(folder / "postgres")
    await server.start()
    try:
        database = await Database.connect(server.address, statement_timeout_seconds=1800)
        try:
            await migrate(database)
            return {str(size): await _measure(database, size) for size in SIZES}
        finally:
            await database.close()
    finally:
        await server.stop()


async def _measure(database: Database, size: int) -> dict[str, float]:
    project_id, principal_id = await _load(database, size)
    tree, head = TreeRepository(), HeadRepository()
    async with database.connection() as connection:
        before = Seq(1)
        listed = await tree.children(connection, project_id, before, folder=_FOLDER)
        assert len(listed.children) == 100, len(listed.children)
        versions = [
            NewVersion(
                node_id=child.version.node_id, number=2, path=child.version.path, kind=Kind.FILE,
                content_hash=_CONTENT, size=7, executable=True, base_number=1,
            )
            for child in listed.children[:_CHANGES] if child.version
        ]  # fmt: skip
        commit = NewCommit(
            id=new_uuid(), principal_id=principal_id, way_in=WayIn.API, message="", versions=tuple(versions),
        )  # fmt: skip
        async with connection.transaction():
            locked = await head.lock(connection, project_id)
            audit = await AuditRepository(TEST_AUDIT_KEY).extension(connection, project_id, [])
            assert await head.land(connection, Landing(head=locked, audit=audit, commits=[commit]))
        after = Seq(2)
        difference = await tree.diff(connection, project_id, before, after)
        assert len(difference.changes) == _CHANGES
        node = NodeId(versions[0].node_id)
        return {
            "diff_10_changes_ms": await _time(lambda: tree.diff(connection, project_id, before, after)),
            "list_folder_100_files_ms": await _time(
                lambda: tree.children(connection, project_id, after, folder=_FOLDER)
            ),
            "list_folder_in_old_snapshot_ms": await _time(
                lambda: tree.children(connection, project_id, before, folder=_FOLDER)
            ),
            "list_root_ms": await _time(lambda: tree.children(connection, project_id, after)),
            "one_node_ms": await _time(lambda: tree.node(connection, project_id, node, before)),
            "tree_page_1000_ms": await _time(lambda: tree.page(connection, project_id, after, limit=1000)),
        }


async def _time(read: Callable[[], Awaitable[object]]) -> float:
    await read()
    seconds = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        await read()
        seconds.append(time.perf_counter() - started)
        await asyncio.sleep(0)
    return round(median(seconds) * 1000, 3)


async def _load(database: Database, size: int) -> tuple[ProjectId, PrincipalId]:
    """A project with `size` files of one commit, 100 in a folder and 10 folders in a folder."""
    project_id = ProjectId(new_uuid())
    async with database.transaction() as connection:
        owner = await IdentityRepository().ensure_principal(connection, PrincipalKind.USER, "owner", is_owner=True)
        await connection.execute("INSERT INTO blobs (hash, size) VALUES ($1, 7) ON CONFLICT DO NOTHING", _CONTENT)
        await connection.execute(
            "INSERT INTO projects (id, name, epoch, created_by) VALUES ($1, $2, $1, $3)",
            project_id, f"bench-{size}", owner.id,
        )  # fmt: skip
        await connection.execute(
            "INSERT INTO commits (project_id, seq, id, principal_id, operator_type) VALUES ($1, 1, $1, $2, 'system')",
            project_id, owner.id,
        )  # fmt: skip
        await connection.execute("UPDATE projects SET head = 1 WHERE id = $1", project_id)
        await _load_files(connection, project_id, size)
    async with database.connection() as connection:
        await connection.execute("VACUUM ANALYZE versions")
    return project_id, owner.id


async def _load_files(connection: Connection, project_id: ProjectId, size: int) -> None:
    await connection.execute("SET LOCAL session_replication_role = replica")  # no row-by-row foreign key checks
    await connection.execute(
        """
        CREATE TEMP TABLE file ON COMMIT DROP AS
        SELECT gen_random_uuid() AS id, format('d%s/e%s/file-%s.txt', n / 1000, n / 100 % 10, n) AS path
        FROM generate_series(0, $1::integer - 1) AS n
        """,
        size,
    )
    await connection.execute("INSERT INTO nodes SELECT $1, id, 1 FROM file", project_id)
    await connection.execute(
        """
        INSERT INTO versions (project_id, node_id, number, seq, path, kind, content_hash, size)
        SELECT $1, id, 1, 1, path, 'file', $2, 7 FROM file
        """,
        project_id,
        _CONTENT,
    )
