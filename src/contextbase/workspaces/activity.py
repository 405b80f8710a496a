"""What agents do besides commits, in the audit trail of their project: workspaces, sandboxes, commands."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from contextbase.audit.chain import AuditExtension
from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.identity.model import Caller
from contextbase.ids import Clock, ProjectId, Seq
from contextbase.workspaces.model import WorkspaceId

__all__ = ["Activity"]

Result = TypeVar("Result")


class Activity:
    def __init__(self, *, database: Database, audit: AuditRepository, clock: Clock) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock

    async def record(
        self,
        acting: Caller,
        workspace: tuple[ProjectId, WorkspaceId],
        action: str,
        told: str,
        *,
        seq: Seq | None = None,
        connection: Connection | None = None,
        **details: object,
    ) -> None:
        """`told`: what the principal did, as the rest of a sentence that begins with its name. With a `connection`, in
        the transaction of what it tells of."""
        project_id, workspace_id = workspace
        entry = self.entry(acting, workspace_id, action, told, seq=seq, **details)
        if connection is not None:
            await self._audit.append(connection, project_id, [entry])
            return

        async def write(connection: Connection, extension: AuditExtension) -> bool | None:
            return await self._audit.write(connection, extension) or None

        if await self.in_one_statement(project_id, entry, write):
            return
        async with self._database.transaction() as own:
            await self._audit.append(own, project_id, [entry])

    def entry(
        self,
        acting: Caller,
        workspace_id: WorkspaceId,
        action: str,
        told: str,
        *,
        seq: Seq | None = None,
        **details: object,
    ) -> AuditEntry:
        return AuditEntry(
            at=self._clock.now(),
            by=acting.actor,
            action=action,
            summary=f"{acting.principal.name} {told}.",
            seq=seq,
            details={"workspace_id": str(workspace_id), **details},
        )

    async def in_one_statement(
        self,
        project_id: ProjectId,
        entry: AuditEntry,
        write: Callable[[Connection, AuditExtension], Awaitable[Result | None]],
    ) -> Result | None:
        """What `write` makes in one statement, with the entry as its audit row. None: nothing was written. Others have
        extended the project's chain, or `write` found a reason of its own."""
        extension = self._audit.foreseen(project_id, [entry])
        if extension is None:
            return None
        self._audit.remember(extension)  # others go on from there
        made: Result | None = None
        try:
            async with self._database.connection() as connection:
                made = await write(connection, extension)
        finally:
            if made is None:
                self._audit.take_back(extension)
        return made
