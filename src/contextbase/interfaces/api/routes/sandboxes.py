"""Sandboxes for agents elsewhere: a workspace in which they run one command after the other."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from contextbase.commands.conversation import answers
from contextbase.commands.model import lowered
from contextbase.commands.program_log import ProgramLog, program_of
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.event_stream import EVENT_STREAM
from contextbase.interfaces.api.item_stream import begun_item_stream, unless_hung_up
from contextbase.interfaces.api.project_parameter import ProjectFilter
from contextbase.interfaces.api.routes.commands import STREAMED
from contextbase.interfaces.api.routes.commits import bytes_of
from contextbase.interfaces.api.run_views import (
    OutputTexts,
    collected_exec,
    outcome_view,
    sandbox_view,
    status_view,
)
from contextbase.interfaces.api.sandbox_commands import sandbox_command
from contextbase.interfaces.api.watched_caller import until_refused
from contextbase.sandbox.model import CommandOutcome, Network, Output, SandboxId
from contextbase.sandbox.ports import Execution
from contextbase.wire.sandbox import (
    CommandBody,
    EndedItem,
    ExecItem,
    ExecView,
    SandboxCreate,
    SandboxPage,
    SandboxView,
)
from contextbase.workspaces.model import NamedWorkspace

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sandboxes", tags=["sandboxes"], responses=problem_answers(404, 409, 421, 429))


@router.post("", status_code=201, responses={200: {"model": SandboxView, "description": "It had one already"}})
async def create(
    body: SandboxCreate,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    response: Response,
) -> SandboxView:
    """A sandbox on the agent's workspace, which is made if need be; or the one it has already, as it is."""
    project_id = await services.projects.id_of(caller, body.project)
    status, is_new = await agents.sandboxes.create(
        caller,
        project_id,
        body.agent,
        limits=lowered(agents.sandbox_limits, body.limits.model_dump()),
        network=Network(body.network),
        environment=body.environment,
    )
    if not is_new:
        response.status_code = 200
    return status_view(status)


@router.get("")
async def list_sandboxes(
    *,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    project_id: ProjectFilter,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SandboxPage:
    """Newest first: everybody's for 'admin', else your own."""
    found = await agents.sandboxes.list(
        caller,
        project_id or caller.grant.project_id,
        before=None if before is None else _id(before),
        limit=limit + 1,
    )
    return SandboxPage(
        sandboxes=[sandbox_view(record) for record in found[:limit]],
        next_before=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/{sandbox_id}")
async def status(sandbox_id: UUID, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> SandboxView:
    """Its state, and what it uses now."""
    return status_view(await agents.sandboxes.status(caller, _id(sandbox_id)))


@router.post("/{sandbox_id}/exec", response_model=ExecView, responses=STREAMED)
async def exec_command(
    *,
    sandbox_id: UUID,
    body: CommandBody,
    request: Request,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
) -> Any:
    """Run a command to its end. Files stay, and so does the folder that a `cd` went to; what is left running in the
    background goes on.

    With `Accept: text/event-stream` the output is told as it comes: items of the type output, then ended, or failed.
    Either way, whoever hangs up ends the command."""
    given = None if body.stdin is None else bytes_of(body.stdin, "stdin")
    command = sandbox_command(body, _id(sandbox_id), has_input=body.stdin is not None)
    log = None
    if body.log:
        record = (await agents.sandboxes.status(caller, _id(sandbox_id))).record
        agent = str(record.principal)
        place = agents.files.workspace(caller, NamedWorkspace(record.project_id, agent, id=record.workspace_id))
        log = ProgramLog(place=place, program=program_of(command))
    execution = await agents.sandboxes.exec(caller, _id(sandbox_id), command)
    steps = _steps(execution, given, log)
    watch = partial(until_refused, request, partial(agents.sandboxes.check, sandbox_id=_id(sandbox_id)))
    if EVENT_STREAM in request.headers.get("accept", ""):
        return begun_item_stream(_items(steps), watch)
    return await unless_hung_up(request, collected_exec(steps), watch)


@router.delete("/{sandbox_id}")
async def remove(sandbox_id: UUID, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> SandboxView:
    """End all that runs in it, and the sandbox. The workspace stays, with the work in it: commit or complete that."""
    return sandbox_view(await agents.sandboxes.remove(caller, _id(sandbox_id)))


async def _steps(
    execution: Execution, given: bytes | None, log: ProgramLog | None
) -> AsyncGenerator[Output | CommandOutcome, None]:
    try:
        async with aclosing(answers(execution, given, log)) as pieces:
            async for piece in pieces:
                yield piece
        outcome = await execution.wait()
        if log is not None:
            await log.save()
        yield outcome
    finally:
        await execution.kill()


async def _items(steps: AsyncGenerator[Output | CommandOutcome, None]) -> AsyncGenerator[ExecItem, None]:
    texts = OutputTexts()
    async with aclosing(steps):
        async for step in steps:
            if isinstance(step, CommandOutcome):
                for rest in texts.rest():
                    yield rest
                yield EndedItem(outcome=outcome_view(step))
            elif (item := texts.item(step)) is not None:
                yield item


def _id(sandbox_id: UUID) -> SandboxId:
    return SandboxId(int=sandbox_id.int)
