"""Forks of sessions that apps compose: each has a folder of its own in the app's tree, which begins as a copy."""

from dataclasses import dataclass, field, replace
from typing import Final

from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.model import App, AppSession
from contextbase.catalog.service import AppService
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, Forbidden
from contextbase.gate.model import (
    ChangeAction,
    ChangeStatus,
    CommitRequest,
    Content,
    ContentKind,
    RequestedChange,
)
from contextbase.gate.service import Gate
from contextbase.identity.model import Caller
from contextbase.ids import Seq, TreePath, new_uuid
from contextbase.sessions.model import AgentSession, SessionId
from contextbase.storage.model import Kind
from contextbase.workspaces.model import FolderContent

__all__ = ["AppFork", "AppForks"]

_BATCH: Final = 500
_KINDS: Final = {Kind.FILE: ContentKind.FILE, Kind.SYMLINK: ContentKind.SYMLINK}


@dataclass(frozen=True, kw_only=True, slots=True)
class AppFork:
    """A place for a session that does not exist yet."""

    session_id: SessionId
    folder: TreePath
    base: Seq  # with which the copy is whole
    app: App
    place: AppPlace
    row: AppSession  # of the session that is forked


@dataclass(frozen=True, kw_only=True, slots=True)
class AppForks:
    database: Database
    apps: AppService
    gate: Gate
    repository: AppSessionRepository = field(default_factory=AppSessionRepository)

    async def prepare(self, caller: Caller, session: AgentSession) -> AppFork:
        """Copy what is committed of the session to the folder of a new one. Raises `Forbidden` if the caller may not
        use the app any more."""
        app = await self.apps.usable(caller, session.app or "")
        session_id = SessionId(new_uuid())
        async with self.database.transaction() as connection:
            row = await self.repository.find(connection, session.id)
            if row is None or session.folder is None:
                raise Conflict("The session's app is gone; start a new session.")
            place = await self.apps.place(connection, app, row.project, caller.principal.name)
            await self.apps.tree_access.open_for(connection, app, place, caller.principal)
            seq = await self.repository.head_of(connection, row.tree)
            files = await self.repository.below(connection, row.tree, seq, session.folder)
        folder = place.workspace(str(session_id))
        changes = [RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=folder, base=Seq(0))] if not files else []
        changes += [_copied(folder / path, content) for path, content in files.items()]
        narrowed = replace(caller, grant=caller.grant.inside(app.project_id, place.user))
        for start in range(0, len(changes), _BATCH):
            batch = tuple(changes[start : start + _BATCH])
            request = CommitRequest(project_id=row.tree, changes=batch, message=f"Fork the session {session.id}")
            answer = await self.gate.commit(narrowed, request)
            refused = [change for change in answer.changes if change.status is ChangeStatus.REFUSED]
            if refused:
                raise Forbidden(f"The session's files cannot be copied: {refused[0].reason}")
            seq = answer.seq
        return AppFork(session_id=session_id, folder=folder, base=seq, app=app, place=place, row=row)

    async def finish(self, connection: Connection, caller: Caller, fork: AppFork, made: AgentSession) -> None:
        """In the transaction that makes the session."""
        await self.apps.tree_access.admit(connection, fork.app, caller.principal, made.agent)
        await self.repository.insert(
            connection,
            made.id,
            fork.app,
            fork.place,
            pinned_version=fork.row.pinned_version,
            overrides=fork.row.overrides,
            workspace_kind=made.workspace_kind,
        )
        if fork.row.runtime_version is not None:  # of which the copied files were composed
            await self.repository.put_version(connection, made.id, fork.row.runtime_version)


def _copied(path: TreePath, content: FolderContent) -> RequestedChange:
    if content.hash is None:
        return RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=path, base=Seq(0))
    return RequestedChange(
        action=ChangeAction.WRITE,
        path=path,
        base=Seq(0),
        content=Content(hash=content.hash, size=content.size),
        kind=_KINDS[content.kind],
        executable=content.executable if content.kind is Kind.FILE else None,
    )
