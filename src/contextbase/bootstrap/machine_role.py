"""What a process does as a machine. Services that run on every machine are opened and closed here."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from contextbase.bootstrap.agents import AgentServices
from contextbase.bootstrap.core import CoreServices
from contextbase.bootstrap.foundation import Foundation
from contextbase.bootstrap.machines import MachineRegistration
from contextbase.bootstrap.models import ModelServices
from contextbase.bootstrap.workers import WorkerServices, open_worker_services
from contextbase.chores import Chore, Where
from contextbase.errors import ContextbaseError
from contextbase.machines.model import NO_DRIVER, Capabilities
from contextbase.machines.presence import Presence
from contextbase.machines.signature import SignatureChecker

__all__ = ["MachineRole", "open_machine_role"]

_log = logging.getLogger(__name__)

_BEATS_IN_A_LEASE = 4


class MachineRole:
    """Nothing is known of the machine before `start`."""

    def __init__(
        self, agents: AgentServices, workers: WorkerServices, presence: Presence, checker: SignatureChecker
    ) -> None:
        self._agents = agents
        self.workers = workers
        self._has_no_driver = False
        self._is_reachable = False
        self.presence = presence
        self.checker = checker

    @property
    def chores(self) -> list[Chore]:
        """They touch this machine's folders and sandboxes."""
        agents, lease = self._agents, self.presence.lease
        return [
            Chore(
                name="beat",
                every=lease / _BEATS_IN_A_LEASE,
                run=self._beat,
                where=Where.MACHINE,
                at_most=lease,
                backs_off=False,
            ),
            Chore(name="examine-machine", every=timedelta(minutes=10), run=self._examine, where=Where.MACHINE),
            Chore(
                name="sweep-workspaces",
                every=timedelta(minutes=5),
                run=agents.workspace_upkeep.sweep,
                where=Where.MACHINE,
            ),
            Chore(
                name="follow-views", every=timedelta(seconds=2), run=agents.shared_views.keep_up, where=Where.MACHINE
            ),
            Chore(
                name="sweep-sandboxes",
                every=timedelta(minutes=1),
                run=agents.sandbox_upkeep.sweep,
                where=Where.MACHINE,
            ),
            Chore(
                name="narrow-sandboxes",
                every=timedelta(seconds=1),
                run=agents.sandbox_upkeep.narrowed,
                where=Where.MACHINE,
            ),
            *self._for_sessions(),
        ]

    def _for_sessions(self) -> list[Chore]:
        """`claim` looks for runs for a minute, and is started again at once."""
        runs, upkeep = self.workers.runs, self.workers.upkeep
        return [
            Chore(
                name="work-on-runs",
                every=timedelta(milliseconds=100),
                run=runs.claim,
                where=Where.MACHINE,
                backs_off=False,
            ),
            Chore(name="keep-runs", every=timedelta(seconds=5), run=runs.beat, where=Where.MACHINE, backs_off=False),
            Chore(name="tend-sessions", every=timedelta(seconds=15), run=upkeep.sweep, where=Where.MACHINE),
        ]

    async def start(self, address: str | None) -> None:
        """Register it. `address`: where other servers reach it; None: there are none."""
        self._is_reachable = address is not None
        await self.presence.register(address)

    async def _beat(self) -> None:
        driver = self._agents.driving.name or (NO_DRIVER if self._has_no_driver else None)
        backend = self._agents.workspaces.node.backend_name
        await self.presence.beat(Capabilities(workspace_backend=backend, sandbox_driver=driver))

    async def _examine(self) -> None:
        """What others want to know before they send work here. A machine by itself finds out when it is used."""
        if not self._is_reachable:
            return
        await self._agents.workspaces.node.site()
        try:
            await self._agents.driving.driver()
            self._has_no_driver = False
        except ContextbaseError as error:
            self._has_no_driver = True
            _log.warning("this machine runs no commands", extra={"reason": error.message})
        await self._beat()


@asynccontextmanager
async def open_machine_role(
    foundation: Foundation,
    core: CoreServices,
    agents: AgentServices,
    models: ModelServices,
    registration: MachineRegistration,
) -> AsyncIterator[MachineRole | None]:
    """None for a server that is no machine."""
    if registration.presence is None or registration.checker is None:
        yield None
        return
    async with open_worker_services(foundation, core, agents, models) as workers:
        yield MachineRole(agents, workers, registration.presence, registration.checker)
