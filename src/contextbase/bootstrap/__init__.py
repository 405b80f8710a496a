"""The only place where a port meets its implementation. Each group of services is opened by a module of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from contextbase.bootstrap.agents import AgentServices, open_agent_services
from contextbase.bootstrap.chores import chore_runner
from contextbase.bootstrap.core import CoreServices, open_core_services
from contextbase.bootstrap.database import open_database
from contextbase.bootstrap.examination import ExaminationRun, findings_of
from contextbase.bootstrap.foundation import open_foundation
from contextbase.bootstrap.machine_role import MachineRole, open_machine_role
from contextbase.bootstrap.machines import open_registration
from contextbase.bootstrap.models import ModelServices, open_model_services
from contextbase.bootstrap.restore import open_restore
from contextbase.bootstrap.workers import session_rewinds, session_terminals, waiting_work
from contextbase.chores import ChoreRunner
from contextbase.config import Settings
from contextbase.machines.signature import CallerSigner
from contextbase.sessions.rewind import SessionRewinds
from contextbase.sessions.terminals import SessionTerminals
from contextbase.sessions.waiting_work import WaitingWork

__all__ = [
    "EVERY_ROLE",
    "AgentServices",
    "CoreServices",
    "ExaminationRun",
    "MachineRole",
    "ModelServices",
    "ProcessRole",
    "Services",
    "findings_of",
    "open_core",
    "open_database",
    "open_restore",
    "open_services",
]


class ProcessRole(StrEnum):
    SERVER = "server"  # it answers clients, and may do the shared chores
    MACHINE = "machine"  # it holds mirrors, workspaces and sandboxes


EVERY_ROLE: Final = frozenset(ProcessRole)


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """What the interfaces call, in groups."""

    core: CoreServices
    agents: AgentServices
    machine: MachineRole | None  # None: this process holds no workspaces
    signer: CallerSigner  # for requests that are sent on
    models: ModelServices
    waiting_work: WaitingWork
    rewinds: SessionRewinds
    terminals: SessionTerminals
    chores: ChoreRunner  # runs nothing by itself
    examination: ExaminationRun


@asynccontextmanager
async def open_core(
    settings: Settings, *, own: bool = False, create: bool = True, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[CoreServices]:
    """The core alone, migrated and ready: for commands that need no agents. `own`, `create`: see `open_database`."""
    async with (
        open_foundation(settings, own=own, create=create, on_step=on_step) as foundation,
        open_core_services(foundation) as core,
    ):
        yield core


@asynccontextmanager
async def open_services(
    settings: Settings,
    *,
    roles: frozenset[ProcessRole] = EVERY_ROLE,
    own: bool = False,
    create: bool = True,
    on_step: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Services]:
    """Everything, migrated and ready; closed in reverse order when the block ends. `create`: see `open_database`."""
    async with (
        open_foundation(settings, own=own, create=create, on_step=on_step) as foundation,
        open_core_services(foundation) as core,
        open_registration(foundation, is_machine=ProcessRole.MACHINE in roles) as registration,
        open_agent_services(
            foundation, core, registration.placement, is_machine=ProcessRole.MACHINE in roles
        ) as agents,
        open_model_services(foundation) as models,
        open_machine_role(foundation, core, agents, models, registration) as machine,
        AsyncExitStack() as stack,
    ):
        workers = None if machine is None else machine.workers
        terminals = session_terminals(foundation, core, workers)
        stack.push_async_callback(terminals.close)
        examination = ExaminationRun(partial(findings_of, settings), clock=foundation.clock)
        stack.push_async_callback(examination.close)
        yield Services(
            core=core,
            agents=agents,
            machine=machine,
            models=models,
            signer=registration.signer,
            waiting_work=waiting_work(core, agents, workers),
            rewinds=session_rewinds(foundation, core, workers),
            terminals=terminals,
            chores=chore_runner(
                foundation,
                core,
                models,
                server=agents.workspaces.node.name,
                machine=machine,
                may_lead=ProcessRole.SERVER in roles,
            ),
            examination=examination,
        )
