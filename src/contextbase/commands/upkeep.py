"""Sandboxes that nobody uses any more: stopped after a silence, removed with their workspace."""

import logging
from contextlib import suppress
from dataclasses import dataclass

from contextbase.commands.driver import MachineDriver
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.repository import SandboxOfNode, SandboxRepository
from contextbase.db.database import Database
from contextbase.errors import ContextbaseError, NotFound
from contextbase.sandbox.model import SandboxState

__all__ = ["SandboxUpkeep"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxUpkeep:
    database: Database
    repository: SandboxRepository
    occupancy: Occupancy
    driving: MachineDriver
    idle_seconds: float

    async def sweep(self) -> None:
        async with self.database.connection() as connection:
            known = await self.repository.of_node(connection, self.driving.node, idle_seconds=self.idle_seconds)
        for one in known:
            try:
                await self._attend(one)
            except ContextbaseError as error:  # made with another driver, say: no reason to leave the others alone
                extra = {"sandbox_id": str(one.id), "error": error.message}
                _log.warning("the upkeep of a sandbox did not get done; trying again", extra=extra)

    async def narrowed(self) -> None:
        """Stop the sandboxes of people who were disabled or lost their role, whatever runs there. Their workspaces
        stay, with the work in them."""
        async with self.database.connection() as connection:
            left = await self.repository.without_leave(connection, self.driving.node)
        for sandbox_id, driver_name in left:
            with suppress(NotFound):  # somebody removed it
                driver = await self.driving.driver(driver_name)
                if (await driver.inspect(sandbox_id)).state is SandboxState.RUNNING:
                    await driver.stop(sandbox_id)
                    _log.info("stopped a sandbox whose owner may not use it", extra={"sandbox_id": str(sandbox_id)})

    async def _attend(self, one: SandboxOfNode) -> None:
        if one.has_ended:
            await self.occupancy.leave(one.workspace_id)
        elif self.occupancy.is_busy(one.id):
            async with self.database.connection() as connection:
                await self.repository.seen(connection, one.id)
        elif one.is_idle:
            driver = await self.driving.driver(one.driver)
            try:
                if (await driver.inspect(one.id)).state is SandboxState.RUNNING:
                    await driver.stop(one.id)
                    _log.info("stopped a sandbox that nobody uses", extra={"sandbox_id": str(one.id)})
            except NotFound:
                await self.occupancy.leave(one.workspace_id)
