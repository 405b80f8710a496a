"""Who is in a workspace's folder on our behalf. A mount can be taken down under a sandbox that has it bound, and what
is written there afterwards would be lost: so all must have left before."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from contextbase.commands.driver import MachineDriver
from contextbase.commands.model import SandboxRecord
from contextbase.commands.repository import SandboxRepository
from contextbase.db.database import Database
from contextbase.errors import Conflict, NotFound
from contextbase.sandbox.model import SandboxId, StorageProof
from contextbase.sandbox.ports import Execution
from contextbase.workspaces.model import WorkspaceId

__all__ = ["Occupancy"]


class Occupancy:
    """Implements the port of the workspaces; see workspaces/ports.py."""

    def __init__(self, *, database: Database, repository: SandboxRepository, driving: MachineDriver) -> None:
        self._database = database
        self._repository = repository
        self._driving = driving
        self._inside: Counter[WorkspaceId] = Counter()
        self._commands: Counter[SandboxId] = Counter()

    @contextmanager
    def entered(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """While a command of ours runs in the folder."""
        self._inside[workspace_id] += 1
        try:
            yield
        finally:
            self._inside[workspace_id] -= 1
            if not self._inside[workspace_id]:
                del self._inside[workspace_id]

    def follow(self, sandbox_id: SandboxId, execution: Execution) -> None:
        """A command in a sandbox that lasts, until it ends."""
        self._commands[sandbox_id] += 1
        execution.when_ended(lambda: self._ended(sandbox_id))

    @contextmanager
    def busy(self, sandbox_id: SandboxId) -> Iterator[None]:
        """While something that is not a command works in a sandbox: it is not idle."""
        self._commands[sandbox_id] += 1
        try:
            yield
        finally:
            self._ended(sandbox_id)

    def is_busy(self, sandbox_id: SandboxId) -> bool:
        return sandbox_id in self._commands

    async def sandbox_of(self, workspace_id: WorkspaceId) -> SandboxRecord | None:
        """The sandbox that lasts of a workspace, if this machine has it."""
        async with self._database.connection() as connection:
            record = await self._repository.of_workspace(connection, workspace_id)
        return None if record is None or record.node != self._driving.node else record

    async def leave(self, workspace_id: WorkspaceId, proof: StorageProof | None = None) -> None:
        """`proof`: that the files of a sandbox which holds its own are stored. It is kept without one."""
        if workspace_id in self._inside:
            raise Conflict("A command still runs in the workspace; wait until it has ended.")
        record = await self.sandbox_of(workspace_id)
        if record is None:
            return
        driver = await self._driving.driver(record.driver)
        with suppress(NotFound):  # it never got so far, or a crash came between
            await driver.remove(record.id, proof=proof)
        async with self._database.connection() as connection:
            await self._repository.removed(connection, record.id)

    def _ended(self, sandbox_id: SandboxId) -> None:
        self._commands[sandbox_id] -= 1
        if not self._commands[sandbox_id]:
            del self._commands[sandbox_id]
