"""Brings a database to this contextbase's schema: plain SQL files, forward only, checksummed, all or nothing."""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.errors import Misconfigured, SchemaTooNew

__all__ = ["Migration", "all_migrations", "migrate", "migrate_within", "pending_migrations"]

# Any number will do, as long as every contextbase uses the same one.
_LOCK: Final = 0x636F6E74657874

_CREATE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def all_migrations() -> list[Migration]:
    """The `NNNN_name.sql` files of this package, in order."""
    found = [
        Migration(version=int(match[1]), name=match[2], sql=file.read_text(encoding="utf-8"))
        for file in files("contextbase.db.migrations").iterdir()
        if (match := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name))
    ]
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError("migrations must be numbered 0001, 0002, … without gaps or doubles")
    return found


async def migrate(database: Database, migrations: list[Migration] | None = None) -> list[Migration]:
    """Apply what is missing, in one transaction under an advisory lock; returns what was applied."""
    async with database.transaction() as connection:
        return await migrate_within(connection, all_migrations() if migrations is None else migrations)


async def migrate_within(connection: Connection, known: list[Migration]) -> list[Migration]:
    """Like `migrate`, in the caller's transaction; other migrations wait until it ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    await connection.execute(_CREATE_TABLE)
    missing = await _check_applied(connection, known)
    for migration in missing:
        await connection.execute(migration.sql, timeout=3600)
        await connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
            migration.version,
            migration.name,
            migration.checksum,
        )
    return missing


async def pending_migrations(database: Database) -> list[Migration]:
    """What `migrate` would apply; raises as it would."""
    async with database.connection() as connection:
        if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
            return all_migrations()
        return await _check_applied(connection, all_migrations())


async def _check_applied(connection: Connection, known: list[Migration]) -> list[Migration]:
    try:
        rows = await connection.fetch("SELECT version, name, checksum FROM schema_migrations ORDER BY version")
    except asyncpg.UndefinedColumnError as error:
        raise Misconfigured("The database has a schema_migrations table that is not contextbase's.") from error
    by_version = {migration.version: migration for migration in known}
    for row in rows:
        ours = by_version.pop(row["version"], None)
        if ours is None:
            raise SchemaTooNew(
                f"The database has migration {row['version']} ({row['name']}), which this contextbase does not know: "
                "it was used by a newer one. Upgrade contextbase; nothing was changed."
            )
        if ours.checksum != row["checksum"]:
            raise Misconfigured(
                f"Migration {row['version']} ({row['name']}) was applied with other contents than this contextbase "
                "has; install the release that made this database. Nothing was changed."
            )
    return list(by_version.values())
