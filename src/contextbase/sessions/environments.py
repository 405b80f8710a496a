"""What a project's sessions find in their sandboxes beside its files: an image, and what a setup script installs."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import InvalidInput
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock, ProjectId

__all__ = ["ProjectEnvironment", "ProjectEnvironments"]

_SQL: Final = load_queries("contextbase.sessions")
_IMAGE: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,254}")
_LONGEST_SETUP: Final = 65_536


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectEnvironment:
    """Checked when it is built."""

    image: str | None = None  # of Docker; None: the machine's
    setup: str = ""  # for /bin/sh; run once on each machine

    def __post_init__(self) -> None:
        if self.image is not None and not _IMAGE.fullmatch(self.image):
            raise InvalidInput("An image is named such as python:3.12-slim or registry.example.com/team/image:tag.")
        if len(self.setup.encode()) > _LONGEST_SETUP or "\0" in self.setup:
            raise InvalidInput(f"A setup script is text of {_LONGEST_SETUP} bytes at the most.")

    @property
    def key(self) -> str:
        """Whatever comes of the same image and script is the same."""
        return hashlib.sha256(f"{self.image or ''}\0{self.setup}".encode()).hexdigest()[:32]


class ProjectEnvironments:
    def __init__(self, *, database: Database, audit: AuditRepository, clock: Clock) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock

    async def of(self, project_id: ProjectId) -> ProjectEnvironment:
        """For machines."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(_SQL.project_environment, project_id)
        return ProjectEnvironment() if row is None else ProjectEnvironment(image=row["image"], setup=row["setup"])

    async def get(self, caller: Caller, project_id: ProjectId) -> ProjectEnvironment:
        caller.require(Action.READ, project_id)
        return await self.of(project_id)

    async def replace(self, caller: Caller, project_id: ProjectId, wanted: ProjectEnvironment) -> ProjectEnvironment:
        """For sandboxes that are made from now on."""
        caller.require(Action.ADMIN, project_id)
        async with self._database.transaction() as connection:
            await connection.execute(_SQL.put_project_environment, project_id, wanted.image, wanted.setup)
            summary = f"Set the environment of sessions: image {wanted.image or 'of the machine'}, setup {wanted.key}."
            now = self._clock.now()
            await self._audit.note(connection, project_id, "project.environment", summary, at=now, by=caller.actor)
        return wanted
