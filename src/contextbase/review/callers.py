"""Callers that no request made: the author of an item, to see what it may do by now, and the system itself."""

from dataclasses import replace
from typing import Final

from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ProjectId

__all__ = ["SystemPrincipal", "in_the_name_of"]

_NAME: Final = "review"
_ACTIONS: Final = frozenset({Action.READ, Action.WRITE})


def in_the_name_of(principal: Principal, project_id: ProjectId) -> Caller:
    """With all that the principal itself may do: the limits of the token it once used are not known any more."""
    return Caller.chore(principal, _ACTIONS, project_id)


class SystemPrincipal:
    """The system as a caller, for what closes itself: the rules of a project do not bind it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._principal: Principal | None = None

    async def caller(self, project_id: ProjectId) -> Caller:
        if self._principal is None:
            async with self._database.transaction() as connection:
                stored = await IdentityRepository().ensure_principal(connection, PrincipalKind.SYSTEM, _NAME)
            self._principal = replace(stored, is_owner=True)
        return Caller.chore(self._principal, _ACTIONS, project_id)
