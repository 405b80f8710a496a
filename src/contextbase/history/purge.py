"""Purge: a leaked secret leaves all history. Its bytes are gone for good; that they were there, and who removed them,
stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import asyncpg

from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.gate.model import MOST_CHANGES, ChangeAction, ChangeStatus, CommitRequest, RequestedChange
from contextbase.gate.service import Gate
from contextbase.gate.trusted import TrustedTerms
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock, ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.removal import hold_for_removal
from contextbase.storage.projects import ProjectService

__all__ = ["DerivedData", "Purge", "PurgeAnswer", "PurgePreview", "PurgeWanted"]

_SQL: Final = load_queries("contextbase.history")
_MOST_TRIES: Final = 10
_NOTHING: Final = ContentHash.of(b"")
"""What all empty files have, in every project."""
_REACHED: Final = frozenset({"versions", "side_versions", "uploads", "run_attachments", "session_snapshot_files"})
"""The tables that a purge takes contents out of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgeWanted:
    """All that ever stood at a path (of a folder: below it), or one content by its name."""

    path: TreePath | None = None
    content: ContentHash | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.content is None):
            raise InvalidInput("Say what to purge: a path, or a content by its hash.")


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgePreview:
    contents: tuple[ContentHash, ...]
    heads: tuple[tuple[ProjectId, TreePath], ...]  # files that hold one of them now, and will be deleted
    projects: tuple[ProjectId, ...]  # in whose history or sessions they are: contents that are equal are stored once
    session_files: int  # in snapshots of sessions, of whatever project; each counts once, in however many it is
    attachments: int  # files of messages


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgeAnswer:
    contents: tuple[ContentHash, ...]
    deleted: tuple[tuple[ProjectId, TreePath], ...]


class DerivedData(Protocol):
    """What is made from contents and kept apart from them, such as the index for search."""

    async def forget_gone(self) -> None:
        """When this returns, nothing of it is left of contents that are gone."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Purge:
    database: Database
    gate: Gate
    catalog: BlobCatalog
    projects: ProjectService
    audit: AuditRepository
    clock: Clock
    derived: DerivedData

    async def preview(self, caller: Caller, project_id: ProjectId, wanted: PurgeWanted) -> PurgePreview:
        """What `purge` would remove."""
        _check(caller)
        async with self.database.connection() as connection:
            await self.gate.opened(connection, caller, project_id)
            names = await self._names(connection, project_id, wanted)
            heads = await connection.fetch(_SQL.heads_with, names)
            held = await _held(connection, names)
            [uses] = await connection.fetch(_SQL.session_uses, names)
        return PurgePreview(
            contents=tuple(names),
            heads=tuple((ProjectId(row["project_id"]), TreePath.stored(row["path"])) for row in heads),
            projects=tuple(held),
            session_files=uses["files"],
            attachments=uses["attachments"],
        )

    async def purge(
        self,
        caller: Caller,
        project_id: ProjectId,
        wanted: PurgeWanted,
        *,
        confirm: str,
    ) -> PurgeAnswer:
        """Remove it from every project's history. `confirm` must be the project's name. Files that hold it now are
        deleted by a commit first; copies in review items and stored answers go too, and files of sessions' snapshots
        and of messages. Can be repeated if it fails; `Conflict` while a backup runs, which would have it anyway, and
        if an event's body is that very content."""
        _check(caller)
        project = await self.projects.find(caller, str(project_id), action=Action.ADMIN)
        if confirm != project.name:
            raise InvalidInput("A purge cannot be undone: confirm it with the project's name.")
        async with self.database.session() as connection:
            await hold_for_removal(connection)  # not for long, but to be told before anything is done
            names = await self._names(connection, project_id, wanted)
        deleted: list[tuple[ProjectId, TreePath]] = []
        is_forgotten = False
        for _ in range(_MOST_TRIES):
            deleted += await self._delete_heads(caller, names)
            try:
                is_forgotten = await self._forget(caller, project_id, names, wanted)
            except asyncpg.ForeignKeyViolationError as error:
                if error.table_name not in _REACHED:
                    raise Conflict(
                        f"The content to purge is also in the table '{error.table_name}', where a purge does not "
                        "reach it; nothing was removed from history. Delete what has it there, and purge again."
                    ) from None
                # Somebody has it by now: look again.
            except asyncpg.DeadlockDetectedError:
                continue  # somebody else was let through first
            if is_forgotten:
                await self.catalog.purge(names)
                await self.derived.forget_gone()
                return PurgeAnswer(contents=tuple(names), deleted=tuple(deleted))
        raise Conflict("Somebody keeps writing the content to purge; nothing was removed from history. Try again.")

    async def _names(self, connection: Connection, project_id: ProjectId, wanted: PurgeWanted) -> list[ContentHash]:
        if wanted.content is not None:
            is_there = bool(await _held(connection, [wanted.content]))
            # A purge that could not remove the bytes is repeated when nothing names them any more.
            is_there = is_there or await connection.fetchval(_SQL.is_left_of_a_purge, wanted.content)
            names = [wanted.content] if is_there else []
        else:
            rows = await connection.fetch(_SQL.contents_of_path, project_id, wanted.path)
            names = [ContentHash(row["content_hash"]) for row in rows]
        if not names:
            raise NotFound("There is no such content in history or in sessions.")
        told = sorted(name for name in names if name != _NOTHING)
        if not told:
            raise InvalidInput("An empty file holds nothing to purge.")
        return told

    async def _delete_heads(self, caller: Caller, names: Sequence[ContentHash]) -> list[tuple[ProjectId, TreePath]]:
        async with self.database.connection() as connection:
            rows = await connection.fetch(_SQL.heads_with, names)
        deleted: list[tuple[ProjectId, TreePath]] = []
        for project_id in dict.fromkeys(ProjectId(row["project_id"]) for row in rows):
            changes = [
                RequestedChange(action=ChangeAction.DELETE, path=TreePath.stored(row["path"]), base=Seq(row["head"]))
                for row in rows
                if row["project_id"] == project_id
            ]
            for start in range(0, len(changes), MOST_CHANGES):
                request = CommitRequest(
                    project_id=project_id,
                    changes=tuple(changes[start : start + MOST_CHANGES]),
                    message="Purge",
                )
                answer = await self.gate.commit_trusted(caller, request, TrustedTerms(is_decided=True))
                for change in answer.changes:
                    if change.status is ChangeStatus.REFUSED:
                        raise Forbidden(f"Nothing was purged from history: {change.reason}")
                gone = [change.path for change in answer.changes if change.status is ChangeStatus.WRITTEN]
                deleted += [(project_id, path) for path in gone]
        return deleted

    async def _forget(
        self,
        caller: Caller,
        purged_in: ProjectId,
        names: Sequence[ContentHash],
        wanted: PurgeWanted,
    ) -> bool:
        """Everything but the bytes, under the locks of the heads and contents; False if a head holds one again, or a
        session of another project has got one meanwhile."""
        async with self.database.transaction() as connection:
            projects = list(await _held(connection, names))
            await connection.execute(_SQL.lock_projects, projects)
            if await connection.fetch(_SQL.heads_with, names):
                return False
            await connection.execute(_SQL.lock_contents, names)
            held = await _held(connection, names)
            if not held.keys() <= set(projects):  # a commit there could hold its trail and wait for our contents
                return False
            await connection.execute(_SQL.forget_copies, projects, names)
            await self.catalog.bury(connection, names, projects)
            for project_id, own in held.items():  # a trail tells of its own project alone
                entry = AuditEntry(
                    at=self.clock.now(),
                    by=caller.actor,
                    action="purge",
                    path=wanted.path if project_id == purged_in else None,
                    summary=f"{caller.principal.name} purged {len(own)} content{'s' * (len(own) > 1)} from history "
                    "and sessions.",
                    details={"contents": own},
                )
                await self.audit.append(connection, project_id, [entry])
        return True


async def _held(connection: Connection, names: Sequence[ContentHash]) -> dict[ProjectId, list[str]]:
    """Which of the contents are in whose history or sessions, in order."""
    held: dict[ProjectId, list[str]] = {}
    for row in await connection.fetch(_SQL.contents_in, names):
        held.setdefault(ProjectId(row["project_id"]), []).append(str(ContentHash(row["content_hash"])))
    return {project_id: sorted(held[project_id]) for project_id in sorted(held)}


def _check(caller: Caller) -> None:
    caller.require(Action.ADMIN)
    if caller.grant.project_id is not None:
        raise Forbidden("Equal contents are stored once for all projects: a purge needs 'admin' for all of them.")
