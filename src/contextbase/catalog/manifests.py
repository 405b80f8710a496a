"""Runtime manifests of apps: published once and never changed, listed, compared, turned into plans."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextbase.audit.repository import AuditRepository
from contextbase.catalog.manifest import ManifestDifference, check_manifest, differences
from contextbase.catalog.model import App, PublishedManifest
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.restore_plan import RunContext, build_restore_plan
from contextbase.catalog.service import AppService
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, InvalidInput, NotFound
from contextbase.identity.model import Caller
from contextbase.ids import Clock
from contextbase.wire.manifest import RestorePlan, RuntimeManifest

__all__ = ["RuntimeManifests"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeManifests:
    database: Database
    repository: AppRepository
    apps: AppService
    audit: AuditRepository
    clock: Clock

    async def publish(self, caller: Caller, name: str, manifest: RuntimeManifest) -> PublishedManifest:
        """From now on the app's latest. Its template is the one that stands in the app's tree now, whatever becomes of
        that. Published again it changes nothing; a version that is another manifest is a `Conflict`."""
        if manifest.app_id != name:
            raise InvalidInput(f"This is a manifest of the app '{manifest.app_id}', and not of '{name}'.")
        check_manifest(manifest)
        async with self.database.transaction() as connection:
            app = await self.apps.managed(connection, caller, name)
            seq = await self.repository.head_of(connection, app.project_id)
            version = manifest.runtime_version
            is_new = await self.repository.insert_manifest(connection, app.id, manifest, seq, caller.principal.id)
            published = await self.version(connection, app, version)
            if not is_new and published.manifest != manifest:
                raise Conflict(
                    f"The app '{name}' has another manifest {version}, which never changes; choose a new version."
                )
            if is_new:
                summary, now = f"Published the manifest {version} of the app '{name}'.", self.clock.now()
                await self.audit.note(
                    connection, app.project_id, "app.manifest", summary, at=now, by=caller.actor, version=version
                )
        return published

    async def list(self, caller: Caller, name: str, *, limit: int = 100) -> Sequence[PublishedManifest]:
        """The latest first."""
        async with self.database.connection() as connection:
            app = (await self.apps.entry(connection, caller, name)).app
            return await self.repository.manifests(connection, app.id, limit=limit)

    async def get(self, caller: Caller, name: str, version: str | None) -> PublishedManifest:
        """None: the latest."""
        async with self.database.connection() as connection:
            app = (await self.apps.entry(connection, caller, name)).app
            return await self.version(connection, app, version)

    async def compare(
        self, caller: Caller, name: str, old: str | None, new: str | None
    ) -> Sequence[ManifestDifference]:
        before, after = await self.get(caller, name, old), await self.get(caller, name, new)
        return differences(before.manifest, after.manifest)

    async def plan(
        self, caller: Caller, name: str, version: str | None, *, project: str | None, session: str
    ) -> RestorePlan:
        """How a session of the caller's would be composed."""
        published = await self.get(caller, name, version)
        context = RunContext(
            app_id=name,
            project_name=project or "",
            user_login_name=caller.principal.name,
            session_id=session,
            runtime_version=published.manifest.runtime_version,
        )
        return build_restore_plan(published.manifest, context)

    async def version(self, connection: Connection, app: App, version: str | None) -> PublishedManifest:
        found = await self.repository.manifest(connection, app.id, version)
        if found is None:
            which = "no manifest yet; publish one" if version is None else f"no manifest '{version[:100]}'"
            raise NotFound(f"The app '{app.name}' has {which}.")
        return found
