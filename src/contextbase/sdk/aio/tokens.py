"""Access tokens, as a part of the clients: `client.tokens`. All of it needs a token that allows 'admin'."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.arguments import checked
from contextbase.sdk.options import KindName
from contextbase.wire.token import ActionName, TokenCreate, TokenCreated, TokenPage, TokenRevoked

__all__ = ["AsyncTokens"]

_TOKENS: Final = "/api/v1/tokens"


class AsyncTokens:
    """A token lets one principal in. Every method raises `Forbidden` without 'admin'."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def create(
        self,
        principal: str,
        *,
        kind: KindName = "agent",
        name: str = "",
        actions: Sequence[ActionName] = ("read", "write"),
        days: float | None = None,
        project: str | None = None,
        path: str | None = None,
    ) -> TokenCreated:
        """Create a token for a principal, who is created if new. Its `secret` is in this answer and nowhere else.

        `actions`: of read, write and admin. `project` and `path` restrict it to a project, and to a part of that.
        Raises `NotFound` if there is no such project."""
        body = TokenCreate(
            principal=principal, kind=kind, name=name, actions=list(actions), days=days, project=project, path=path
        )
        return await self._connection.call(TokenCreated, "POST", _TOKENS, body)

    @checked
    async def list(self, *, before: UUID | None = None, limit: int = 100) -> TokenPage:
        """All tokens, newest first, without their secrets. Pass the page's `next_before` for the next page."""
        return await self._connection.read(TokenPage, _TOKENS, before=before, limit=limit)

    @checked
    async def revoke(self, token_id: UUID) -> TokenRevoked:
        """End a token for good; it stays in the list. Raises `NotFound` if there is none."""
        return await self._connection.call(TokenRevoked, "DELETE", f"{_TOKENS}/{token_id}")
