"""Sharing sessions, as a part of the clients: `client.session_shares`."""

from typing import Literal
from urllib.parse import quote
from uuid import UUID

from contextbase.agent_vocabulary import ShareLevel
from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.arguments import checked
from contextbase.wire.session import SessionPage
from contextbase.wire.session_share import SessionShareList, SessionSharePut

__all__ = ["AsyncSessionShares"]

ShareLevelName = Literal["read", "drive"]


class AsyncSessionShares:
    """Whom sessions are shared with. A session is its owner's alone until the owner shares it."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def list(self, session: UUID) -> SessionShareList:
        """Whom a session is shared with."""
        return await self._connection.read(SessionShareList, f"/api/v1/sessions/{session}/shares")

    @checked
    async def share(self, session: UUID, user: str, level: ShareLevelName | ShareLevel = "read") -> SessionShareList:
        """Let a person read a session of yours; or drive it: send messages, stop runs, and answer what the agent asks.
        It works with your rights. Raises `NotFound` for somebody who may not read where it works."""
        body = SessionSharePut(level=ShareLevel(level))
        return await self._connection.call(SessionShareList, "PUT", _share(session, user), body)

    @checked
    async def unshare(self, session: UUID, user: str) -> None:
        """Share it with a person no more, within a second; with your own slug: leave somebody's session."""
        await self._connection.done("DELETE", _share(session, user))

    @checked
    async def list_shared_with_me(
        self, project: str | None = None, *, before: UUID | None = None, limit: int = 100
    ) -> SessionPage:
        """Sessions that others share with you, newest first."""
        return await self._connection.read(
            SessionPage, "/api/v1/shared-sessions", project=project, before=before, limit=limit
        )


def _share(session: UUID, user: str) -> str:
    return f"/api/v1/sessions/{session}/shares/{quote(user, safe='')}"
