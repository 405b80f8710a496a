"""Whole systems to back up and restore: services over a database and a data folder of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from tests.support.api import url_of
from tests.support.gate_world import token_of, write
from tests.support.postgres import database_copy

from contextbase.backup.manifest import Manifest
from contextbase.backup.model import OnProgress, Restored
from contextbase.bootstrap import CoreServices, Services, open_restore, open_services
from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.gate.model import CommitAnswer, CommitRequest, RequestedChange
from contextbase.identity.model import Caller, PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ProjectId, Seq
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.model import Project
from contextbase.storage.tree import TreeRepository

__all__ = ["INLINE_LIMIT", "Place", "System", "filled", "opened_system", "place", "restored", "s3_settings"]

INLINE_LIMIT = 1000
LARGE = b"0123456789abcdef" * 500


@dataclass(frozen=True, kw_only=True)
class Place:
    """An empty database that nothing has seen yet, and an empty data folder."""

    settings: Settings


@asynccontextmanager
async def place(server: DatabaseAddress, data: Path, **settings: Any) -> AsyncIterator[Place]:
    async with database_copy(server, "template0") as address:
        url = SecretStr(address.url or url_of(address))
        yield Place(settings=Settings(data=data, database_url=url, inline_limit_bytes=INLINE_LIMIT, **settings))


def s3_settings(connection: S3Connection) -> dict[str, Any]:
    return {
        "blobs": f"s3://{connection.bucket}/{connection.prefix}",
        "s3_endpoint": connection.endpoint,
        "s3_access_key_id": connection.access_key_id,
        "s3_secret_access_key": SecretStr(connection.secret_access_key),
    }


@dataclass(frozen=True, kw_only=True)
class System:
    groups: Services
    owner: Caller
    secret: str  # the owner's token

    @property
    def services(self) -> CoreServices:
        return self.groups.core

    async def project(self, name: str) -> Project:
        return await self.services.projects.create(self.owner, name)

    async def agent(self, name: str) -> Caller:
        async with self.services.database.transaction() as connection:
            principal = await IdentityRepository().ensure_principal(connection, PrincipalKind.AGENT, name)
        return Caller.with_token(token_of(principal))

    async def commit(self, project_id: ProjectId, *changes: RequestedChange, who: Caller | None = None) -> CommitAnswer:
        request = CommitRequest(project_id=project_id, changes=changes)
        return await self.services.gate.commit(who or self.owner, request)

    async def tree(self, project_id: ProjectId, seq: int) -> dict[str, tuple[str, bytes | None]]:
        """Kind and content by path, in a snapshot."""
        async with self.services.database.connection() as connection:
            page = await TreeRepository().page(connection, project_id, Seq(seq), limit=100_000)
        catalog = self.services.catalog
        return {
            str(version.path): (
                str(version.kind),
                None if version.content_hash is None else await catalog.read(version.content_hash),
            )
            for version in page
        }

    async def problems(self) -> list[object]:
        return [step.problem async for step in self.services.fsck.run() if step.problem]

    async def back_up(self, target: Path) -> Manifest:
        return (await self.services.backups.create(target)).manifest


@asynccontextmanager
async def opened_system(settings: Settings) -> AsyncIterator[System]:
    async with open_services(settings) as groups:
        identity = groups.core.identity
        secret = await identity.ensure_owner(None)
        assert secret
        yield System(groups=groups, owner=await identity.authenticate(secret), secret=secret)


async def filled(system: System, name: str = "notes") -> Project:
    """A project with small and large files, changed, set aside, renamed and deleted."""
    project = await system.project(name)
    await system.commit(project.id, write("a.txt", b"one\n", 0), write("large.bin", LARGE, 0))
    await system.commit(project.id, write("a.txt", b"two\n", 1), write("folder/b.json", b'{"a": 1}', 1))
    await system.commit(project.id, write("a.txt", b"three\n", 1))  # made from an older base: a conflict, for review
    await system.commit(project.id, write("large.bin", LARGE[::-1], 1))
    return project


async def restored(
    settings: Settings, source: Path, *, snapshot: str | None = None, on_progress: OnProgress = lambda _: None
) -> Restored:
    async with open_restore(settings) as service:
        return await service.restore(source, snapshot=snapshot, on_progress=on_progress)
