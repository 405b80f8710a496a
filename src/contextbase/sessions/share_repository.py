"""Whom sessions are shared with, in PostgreSQL. Every method works in the caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contextbase.agent_vocabulary import ShareLevel
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.ids import PrincipalId, ProjectId
from contextbase.sessions.model import AgentSession, RunId, SessionId
from contextbase.sessions.repository import session_of_row

__all__ = ["SessionShare", "ShareRepository"]

_SQL: Final = load_queries("contextbase.sessions")


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionShare:
    user: str  # the slug
    display_name: str
    level: ShareLevel
    shared_at: datetime


class ShareRepository:
    async def level(self, connection: Connection, session_id: SessionId, person: PrincipalId) -> ShareLevel | None:
        found = await connection.fetchval(_SQL.share_level, session_id, person)
        return None if found is None else ShareLevel(found)

    async def put(
        self,
        connection: Connection,
        session_id: SessionId,
        person: PrincipalId,
        level: ShareLevel,
        *,
        by: PrincipalId,
        at: datetime,
    ) -> None:
        await connection.execute(_SQL.put_share, session_id, person, level, by, at)

    async def delete(self, connection: Connection, session_id: SessionId, person: PrincipalId) -> bool:
        return bool(await connection.fetchval(_SQL.delete_share, session_id, person))

    async def of_session(self, connection: Connection, session_id: SessionId) -> list[SessionShare]:
        return [
            SessionShare(
                user=row["name"],
                display_name=row["display_name"],
                level=ShareLevel(row["level"]),
                shared_at=row["shared_at"],
            )
            for row in await connection.fetch(_SQL.shares_of_session, session_id)
        ]

    async def person(self, connection: Connection, slug: str) -> PrincipalId | None:
        """Somebody with an account who is not disabled."""
        found: PrincipalId | None = await connection.fetchval(_SQL.person_to_share_with, slug)
        return found

    async def shared_with(
        self,
        connection: Connection,
        person: PrincipalId,
        *,
        project_id: ProjectId | None,
        before: SessionId | None,
        limit: int,
    ) -> Sequence[AgentSession]:
        """Newest first."""
        rows = await connection.fetch(_SQL.sessions_shared_with, person, before, project_id, limit)
        return [session_of_row(row) for row in rows]

    async def put_asked_by(self, connection: Connection, run_id: RunId, person: PrincipalId) -> None:
        """Of a run that somebody else than the session's owner asked for."""
        await connection.execute(_SQL.put_asked_by, run_id, person)

    async def runs_without_leave(self, connection: Connection) -> Sequence[tuple[SessionId, RunId]]:
        """Open runs of people who may not drive the session any more."""
        rows = await connection.fetch(_SQL.runs_without_leave)
        return [(SessionId(row["session_id"]), RunId(row["id"])) for row in rows]
