"""Sessions whose files cannot be stored, for `doctor`."""

import asyncpg

from contextbase.config import Settings
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import embedded_address
from contextbase.errors import ContextbaseError
from contextbase.sessions.repository import SessionRepository

__all__ = ["session_alerts"]


async def session_alerts(settings: Settings) -> dict[str, str] | None:
    """What is wrong, by session. None: the database does not run, or has no sessions yet."""
    url = settings.database.url
    try:
        address = (
            embedded_address(settings.data.absolute() / "postgres")
            if url is None
            else DatabaseAddress(url=url.get_secret_value())
        )
        database = await Database.connect(address)
        try:
            async with database.connection() as connection:
                found = await SessionRepository().alerts(connection)
        finally:
            await database.close()
    except (ContextbaseError, asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
        return None
    return {str(session_id): alert for session_id, alert in found}
