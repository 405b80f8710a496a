"""What PostgreSQL's planner believes of the versions, while they grow faster than autovacuum looks at them."""

import asyncio
import logging
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import ContextbaseError
from contextbase.gate.repository import GateRepository

__all__ = ["VersionStatistics"]

_log = logging.getLogger(__name__)

_FIRST: Final = 2_000


class VersionStatistics:
    """Autovacuum looks once a minute. Until then a large import has no statistics, every index on a project's id seems
    equally good, and each commit of many files reads the whole project for each of them. So the table is analyzed
    whenever what this process has written has doubled."""

    def __init__(self, database: Database, repository: GateRepository) -> None:
        self._database = database
        self._repository = repository
        self._written = 0
        self._next = _FIRST
        self._task: asyncio.Task[None] | None = None

    def wrote(self, versions: int) -> None:
        self._written += versions
        if self._written >= self._next and (self._task is None or self._task.done()):
            self._next = 2 * self._written
            self._task = asyncio.create_task(self._refresh(), name="version-statistics")

    async def close(self) -> None:
        if self._task is not None:
            await self._task

    async def _refresh(self) -> None:
        try:
            async with self._database.connection() as connection:
                await self._repository.analyze_versions(connection)
        except ContextbaseError as error:  # autovacuum will do it
            _log.warning("the versions could not be analyzed", extra={"error": error.message})
