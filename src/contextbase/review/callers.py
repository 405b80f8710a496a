"""Callers that no request made: the author of an item, to see what it may do by now, and the system itself."""

from dataclasses import replace
from typing import Final

from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind, Token
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, SystemClock, TokenId

__all__ = ["SystemPrincipal", "in_the_name_of"]

_NAME: Final = "review"


def in_the_name_of(principal: Principal, clock: Clock | None = None) -> Caller:
    """With all that the principal itself may do: the limits of the token it once used are not known any more."""
    now = (clock or SystemClock()).now()
    token = Token(
        id=TokenId(principal.id),
        principal=principal,
        name="",
        actions=frozenset({Action.READ, Action.WRITE}),
        project_id=None,
        path_prefix=None,
        created_at=now,
        expires_at=now,
    )
    return Caller(principal=principal, token=token)


class SystemPrincipal:
    """The system as a caller, for what closes itself: the rules of a project do not bind it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._caller: Caller | None = None

    async def caller(self) -> Caller:
        if self._caller is None:
            async with self._database.transaction() as connection:
                stored = await IdentityRepository().ensure_principal(connection, PrincipalKind.SYSTEM, _NAME)
            self._caller = in_the_name_of(replace(stored, is_owner=True))
        return self._caller
