"""In whose name a workspace is made and committed."""

from dataclasses import replace
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind, PrincipalName
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ProjectId
from contextbase.workspaces.ports import SessionFolders

__all__ = ["Agents"]

_ACTIONS: Final = frozenset({Action.READ, Action.WRITE})
_MOST_KNOWN: Final = 10_000


class Agents:
    """Everybody acts for themselves. Who may make tokens for an agent may also act for it, and so may who owns the
    session that it works in."""

    def __init__(self, *, database: Database, repository: IdentityRepository, sessions: SessionFolders) -> None:
        self._database = database
        self._sessions = sessions
        self._repository = repository
        self._known: dict[str, Principal] = {}  # a principal stays what it is

    async def acting(
        self, caller: Caller, project_id: ProjectId | None, agent: str | None, *, make: bool = False
    ) -> Caller:
        """The caller as that agent (None: as itself); with `make` a new agent is made. Raises `Forbidden`, `NotFound`.

        The audit trail keeps both: the agent who acts, and on whose behalf."""
        if agent is None or _names(agent, caller.principal):
            return caller.working_as(caller.principal)
        if not caller.administers(project_id) and (owner := await self._owner(caller, project_id, agent)) is not None:
            return owner
        caller.require(Action.ADMIN, project_id)
        if caller.grant.path_prefix is not None:
            raise Forbidden(f"This {caller.grant.source} is for one folder; it cannot act for another agent.")
        principal = await self._principal(caller, project_id, agent, make=make)
        grant = caller.grant.narrowed(_ACTIONS, project_id)  # 'admin' alone neither reads nor writes files
        return replace(caller.working_as(principal), grant=grant)

    async def may_find(self, caller: Caller, project_id: ProjectId, principal: Principal) -> bool:
        """Whether the caller may know of a workspace of theirs."""
        is_own = principal.id == caller.principal.id or caller.administers(project_id)
        if is_own and caller.grant.reaches(project_id):
            return True
        return await self._owner(caller, project_id, str(principal)) is not None

    async def _owner(self, caller: Caller, project_id: ProjectId | None, agent: str) -> Caller | None:
        """The owner of the agent's session, as the agent; None for everybody else."""
        return await self._sessions.in_folder(caller, PrincipalName.parse(agent).name, project_id)

    async def _principal(self, caller: Caller, project_id: ProjectId | None, text: str, *, make: bool) -> Principal:
        name = PrincipalName.parse(text)
        if name.kind not in (None, PrincipalKind.AGENT):
            raise InvalidInput(f"{text} is not an agent. Only agents' workspaces can be managed by others.")
        if (known := self._known.get(name.name)) is not None:
            return known
        person = caller.grant.person
        async with self._database.transaction() as connection:
            found = await self._repository.find_principal(connection, PrincipalKind.AGENT, name.name)
            if found is None and make:
                found = await self._repository.ensure_principal(
                    connection, PrincipalKind.AGENT, name.name, made_by=person
                )
            if found is None:
                raise NotFound(f"There is no agent {name.name}.")
            if await self._repository.has_maker(connection, found.id):  # who may leave
                if project_id is not None:
                    await self._repository.adopt(connection, found.id, person, project_id)
                return found
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[name.name] = found
        return found


def _names(text: str, principal: Principal) -> bool:
    return text in (principal.name, str(principal), str(principal.id))
