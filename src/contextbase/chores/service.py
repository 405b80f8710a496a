"""What is known of chores, for operators."""

from contextbase.chores.model import ChoreRun, Leader
from contextbase.chores.repository import ChoreRepository
from contextbase.db.database import Database

__all__ = ["ChoreService"]


class ChoreService:
    def __init__(self, *, database: Database, repository: ChoreRepository) -> None:
        self._database = database
        self._repository = repository

    async def leader(self) -> Leader | None:
        """Who leads, or led last; None: nobody ever has."""
        async with self._database.connection() as connection:
            return await self._repository.leader(connection)

    async def runs(self) -> list[ChoreRun]:
        """The last runs of the leader's chores, whoever led."""
        async with self._database.connection() as connection:
            return [one.run for one in await self._repository.recorded(connection)]
