"""Sessions that apps compose: made for whoever may use the app, and configured by its layers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

import asyncpg

from contextbase.agent_vocabulary import ExecutionProfile
from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.configuration import AgentConfiguration
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.service import AppService
from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.gate.model import ChangeAction, ChangeStatus, CommitRequest, RequestedChange
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller, GrantSource
from contextbase.ids import ProjectId, Seq, TreePath, new_uuid
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.model import AgentSession, Land, SessionId, SessionRequest
from contextbase.sessions.service import SessionService
from contextbase.wire.agent_config import AgentConfig, WorkspaceKind

__all__ = ["AppSessionRequest", "AppSessions"]

_ACTIONS: Final = frozenset({Action.READ, Action.WRITE})
FindProvider = Callable[[str | None], Awaitable[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AppSessionRequest:
    """A session of an app that somebody asks for."""

    app: str
    project: str | None = None  # of the app
    runtime_version: str | None = None  # None: it follows the latest
    title: str = ""
    overrides: AgentConfig = field(default_factory=lambda: AgentConfig.model_validate({}))


@dataclass(frozen=True, kw_only=True, slots=True)
class AppSessions:
    database: Database
    service: SessionService
    access: SessionAccess
    apps: AppService
    configuration: AgentConfiguration
    catalog: AppRepository
    repository: AppSessionRepository
    gate: Gate
    provider: FindProvider  # the one that is asked for, or (None) the first that is installed

    async def create(self, caller: Caller, request: AppSessionRequest) -> AgentSession:
        """In the caller's own folder of the app's tree, composed before each run. Raises `NotFound` for an app that the
        caller may not see, `Forbidden` if it may not be used, `Conflict` if the app has no manifest yet."""
        if caller.grant.source is GrantSource.RUN:
            raise Forbidden("An agent at work in a session starts no other session.")
        app = await self.apps.usable(caller, request.app)
        session_id = SessionId(new_uuid())
        async with self.database.transaction() as connection:
            place = await self.apps.place(connection, app, request.project, caller.principal.name)
            if await self.catalog.manifest(connection, app.id, request.runtime_version) is None:
                raise _no_version(app.name, request.runtime_version)
            found = await self.configuration.of_user(connection, app, place, caller.principal.id, request.overrides)
            await self.apps.tree_access.open_for(connection, app, place, caller.principal)
        config, folder = found.effective.config, place.workspace(str(session_id))
        kind = config.workspace_kind or WorkspaceKind.FOLDER
        narrowed = replace(caller, grant=caller.grant.inside(app.project_id, place.user))
        await self._make_folder(narrowed, app.project_id, folder)
        wanted = SessionRequest(
            project_id=app.project_id,
            folder=folder,
            provider=await self.provider(config.provider),
            model=config.model,
            land=config.landing or Land.AUTO,
            profile=config.profile or ExecutionProfile.DEFAULT,
            title=request.title,
        )
        async with self.database.transaction() as connection:
            actions = narrowed.grant.actions & _ACTIONS
            session = await self.service.add(connection, narrowed, wanted, actions, session_id=session_id)
            await self.apps.tree_access.admit(connection, app, caller.principal, session.agent)
            await self.repository.insert(
                connection,
                session_id,
                app,
                place,
                pinned_version=request.runtime_version,
                overrides=request.overrides.model_dump(mode="json", exclude_unset=True),
                workspace_kind=kind,
            )
        return replace(session, app=app.name, workspace_kind=kind)

    async def _make_folder(self, caller: Caller, tree: ProjectId, folder: TreePath) -> None:
        """In the tree, so that the session's agent sees where it works from the beginning."""
        change = RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=folder, base=Seq(0))
        request = CommitRequest(project_id=tree, changes=(change,), message="Begin a session")
        [answer] = (await self.gate.commit(caller, request)).changes
        if answer.status is ChangeStatus.REFUSED:
            raise Forbidden(f"The folder of the session cannot be made: {answer.reason}")

    async def pin(self, caller: Caller, session_id: SessionId, version: str | None) -> None:
        """From the next run on it is composed of this version; None: of whichever is the latest then."""
        async with self.database.transaction() as connection:
            await self.access.owned(connection, caller, session_id)
            row = await self.repository.find(connection, session_id)
            if row is None:
                raise Conflict("The session is not one of an app.")
            try:
                await self.repository.pin(connection, session_id, version)
            except asyncpg.ForeignKeyViolationError:
                raise _no_version(row.app, version) from None


def _no_version(app: str, version: str | None) -> Exception:
    if version is None:
        return Conflict(f"The app '{app}' has no runtime manifest yet; publish one: contextbase manifest publish.")
    return NotFound(f"The app '{app}' has no manifest '{version[:100]}'.")
