"""Projects: made, found, listed, deleted."""

from collections.abc import Sequence
from typing import Final

import asyncpg

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.db.ttl_cache import TtlCache
from contextbase.errors import Conflict, InvalidInput, NotFound
from contextbase.identity.levels import check_pattern
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock, ProjectId, Seq, new_uuid
from contextbase.storage.model import Project, Sharing, StoredSizes, as_project_id, check_project_name

__all__ = ["ProjectService"]

_SQL: Final = load_queries("contextbase.storage")
_LONGEST_DESCRIPTION: Final = 4096
_MOST_PATTERNS: Final = 1000


class ProjectService:
    def __init__(self, *, database: Database, audit: AuditRepository, clock: Clock) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock
        self._ids: TtlCache[str, ProjectId] = TtlCache()

    async def create(self, caller: Caller, name: str, description: str = "") -> Project:
        """Make an empty project; raises `Conflict` when the name is taken."""
        async with self._database.transaction() as connection:
            return await self.create_in(connection, caller, name, description)

    async def create_in(self, connection: Connection, caller: Caller, name: str, description: str = "") -> Project:
        """As `create`, in a transaction under way."""
        caller.require(Action.ADMIN)
        check_project_name(name)
        if len(description.encode()) > _LONGEST_DESCRIPTION or "\x00" in description:
            raise InvalidInput(f"A description has at most {_LONGEST_DESCRIPTION} bytes and no NUL.")
        try:
            [row] = await connection.fetch(
                _SQL.insert_project, new_uuid(), name, description, new_uuid(), caller.principal.id
            )
        except asyncpg.UniqueViolationError:
            raise Conflict(f"There is a project named '{name}' already; choose another name.") from None
        await connection.execute(_SQL.insert_stream_head, row["id"])
        await self._record(connection, caller, row["id"], "project.create", f"Made project '{name}'.")
        return _project(row)

    async def find(self, caller: Caller, name_or_id: str, *, action: Action = Action.READ) -> Project:
        """By name, or by id, for an action; what the caller may not use is not found."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(_SQL.project_by_name, name_or_id)
            if row is None and (project_id := as_project_id(name_or_id)):
                row = await connection.fetchrow(_SQL.project_by_id, project_id)
        if row is None or not caller.grant.reaches(row["id"]):
            raise NotFound(f"There is no project '{name_or_id[:120]}'.")
        caller.require(action, row["id"])
        return _project(row)

    async def id_of(self, caller: Caller, name_or_id: str, *, action: Action = Action.READ) -> ProjectId:
        """Like `find`, for callers who need no more than the id; a name may be a second old."""
        project_id = self._ids.get(name_or_id)
        if project_id is None or not caller.grant.reaches(project_id):
            project_id = (await self.find(caller, name_or_id, action=action)).id
            self._ids.put(name_or_id, project_id)
        caller.require(action, project_id)
        return project_id

    async def list(self, caller: Caller, *, after: str = "", limit: int = 100) -> "list[Project]":
        """By name, after a name."""
        caller.require(Action.READ, caller.grant.project_id)
        async with self._database.connection() as connection:
            if caller.grant.project_id is not None:
                rows = await connection.fetch(_SQL.project_by_id, caller.grant.project_id)
                return [_project(row) for row in rows if row["name"] > after]
            rows = await connection.fetch(_SQL.project_page, after, limit, caller.grant.reachable)
            return [_project(row) for row in rows]

    async def delete(self, caller: Caller, project_id: ProjectId) -> None:
        """Hide the project and free its name. Its content stays stored: deleting is never losing. Events go."""
        caller.require(Action.ADMIN, project_id)
        async with self._database.transaction() as connection:
            if not await connection.fetchval(_SQL.delete_project, project_id):
                raise NotFound(f"There is no project {project_id}.")
            await connection.execute(_SQL.delete_project_events, project_id)
            await self._record(connection, caller, project_id, "project.delete", "Deleted the project.")
        self._ids.forget()

    async def set_sharing(
        self,
        caller: Caller,
        project_id: ProjectId,
        *,
        reads_gitignore: bool | None = None,
        allowed_secrets: Sequence[str] | None = None,
    ) -> Project:
        """Change which new files workspaces commit; None leaves a setting as it is."""
        caller.require(Action.ADMIN, project_id)
        patterns = None
        if allowed_secrets is not None:
            patterns = list(dict.fromkeys(map(check_pattern, allowed_secrets)))
            if len(patterns) > _MOST_PATTERNS:
                raise InvalidInput(f"A project allows at most {_MOST_PATTERNS} patterns of secret files.")
        async with self._database.transaction() as connection:
            row = await connection.fetchrow(_SQL.set_sharing, project_id, reads_gitignore, patterns)
            if row is None:
                raise NotFound(f"There is no project {project_id}.")
            project = _project(row)
            summary = (
                f"Workspaces {'read' if project.sharing.reads_gitignore else 'do not read'} .gitignore, and share "
                f"{len(project.sharing.allowed_secrets)} patterns of files that look like credentials."
            )
            await self._record(
                connection,
                caller,
                project_id,
                "project.sharing",
                summary,
                reads_gitignore=project.sharing.reads_gitignore,
                allowed_secrets=list(project.sharing.allowed_secrets),
            )
        return project

    async def sizes(self, project_id: ProjectId) -> StoredSizes:
        async with self._database.connection() as connection:
            [row] = await connection.fetch(_SQL.sizes, project_id)
            stored = await connection.fetchval(_SQL.stored_bytes, project_id)
        return StoredSizes(
            files=row["files"], bytes=int(row["bytes"]), versions=row["versions"], stored_bytes=int(stored)
        )

    async def _record(
        self,
        connection: Connection,
        caller: Caller,
        project_id: ProjectId,
        action: str,
        summary: str,
        **details: object,
    ) -> None:
        now = self._clock.now()
        await self._audit.note(connection, project_id, action, summary, at=now, by=caller.actor, **details)


def _project(row: asyncpg.Record) -> Project:
    return Project(
        id=ProjectId(row["id"]),
        name=row["name"],
        description=row["description"],
        head=Seq(row["head"]),
        epoch=row["epoch"],
        policy_version=row["policy_version"],
        created_at=row["created_at"],
        sharing=Sharing(reads_gitignore=row["reads_gitignore"], allowed_secrets=tuple(row["allowed_secrets"])),
    )
