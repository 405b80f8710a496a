"""The machines that hold workspaces and sandboxes. Everything here needs 'admin' of all projects."""

from typing import Annotated

from fastapi import APIRouter, Path

from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.machines.model import MachineRecord
from contextbase.wire.machine import MachineForgotten, MachinePage, MachineView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/machines", tags=["machines"], responses=problem_answers(404, 409))

Name = Annotated[str, Path(max_length=200, pattern=r"^[^\x00]*$")]


@router.get("")
async def list_machines(caller: AuthenticatedCaller, services: AuthenticatedServices) -> MachinePage:
    """All of them by name, those that do not run as well."""
    return MachinePage(machines=[_view(machine) for machine in await services.machines.list(caller)])


@router.post("/{name}/drain")
async def drain(name: Name, caller: AuthenticatedCaller, services: AuthenticatedServices) -> MachineView:
    """Make no new workspaces there. Those that are there go on."""
    return _view(await services.machines.drain(caller, name, is_draining=True))


@router.post("/{name}/resume")
async def resume(name: Name, caller: AuthenticatedCaller, services: AuthenticatedServices) -> MachineView:
    """Make new workspaces there again."""
    return _view(await services.machines.drain(caller, name, is_draining=False))


@router.delete("/{name}")
async def forget(name: Name, caller: AuthenticatedCaller, services: AuthenticatedServices) -> MachineForgotten:
    """Remove a machine that will not come back, and give up the workspaces that were open there: their agents can have
    new ones. 409 while it runs."""
    given_up = await services.machines.forget(caller, name)
    return MachineForgotten(name=name, workspaces_given_up=given_up)


def _view(machine: MachineRecord) -> MachineView:
    return MachineView(
        id=machine.id,
        name=machine.name,
        state=machine.state.value,
        is_draining=machine.is_draining,
        address=machine.address,
        version=machine.version,
        workspace_backend=machine.capabilities.workspace_backend,
        sandbox_driver=machine.capabilities.sandbox_driver,
        workspaces=machine.workspaces,
        started_at=machine.started_at,
        seen_at=machine.seen_at,
    )
