"""Forgets what has served its time: answers kept for repeated requests, and uploads nobody committed."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.ids import Clock

__all__ = ["Forgotten", "Housekeeping"]

ANSWERS_KEPT: Final = timedelta(days=7)
_SQL: Final = load_queries("contextbase.gate")


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    answers: int
    uploads: int


class Housekeeping:
    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self, *, uploads_kept: timedelta) -> Forgotten:
        """Remove old rows; the blobs of forgotten uploads are then GC's, unless something refers to them."""
        now = self._clock.now()
        async with self._database.connection() as connection:
            answers = await connection.execute(_SQL.forget_answers, now - ANSWERS_KEPT)
            uploads = await connection.execute(_SQL.forget_uploads, now - uploads_kept)
        return Forgotten(answers=int(answers.split()[-1]), uploads=int(uploads.split()[-1]))
