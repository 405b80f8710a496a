"""One command by an agent: a workspace, a sandbox, the command, and what it changed brought back."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from fastapi import APIRouter, Request

from contextbase.commands.model import CommitWhen, RunRequest, RunStep, lowered
from contextbase.commands.shell import shell_argv
from contextbase.identity.model import Action, Caller
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.event_stream import EVENT_STREAM, STREAMED_EVENTS
from contextbase.interfaces.api.item_stream import item_stream, unless_hung_up
from contextbase.interfaces.api.routes.commits import bytes_of
from contextbase.interfaces.api.run_views import OutputTexts, collected_run, run_item
from contextbase.interfaces.api.watched_caller import until_refused
from contextbase.sandbox.model import WORKSPACE, Command, CommandOutcome, Network, Output
from contextbase.wire.sandbox import CommandCreate, CommandItem, CommandView
from contextbase.workspaces.checkpoints import Wish

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/commands", tags=["commands"], responses=problem_answers(404, 409, 429))

STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": STREAMED_EVENTS, "description": "All at the end, or a stream."}
}


@router.post("", response_model=CommandView, responses=STREAMED)
async def run_command(
    body: CommandCreate,
    request: Request,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
) -> Any:
    """Run a command in a workspace of its own, then commit what it changed.

    With `Accept: text/event-stream` what happens is told as it happens: items of the type started, output, ended, and
    completed, kept or failed. Either way, whoever hangs up ends the command; what it had changed stays in its
    workspace."""
    project_id = await services.projects.id_of(caller, body.project)
    wanted = RunRequest(
        command=Command(
            argv=tuple(body.argv) if body.argv is not None else shell_argv(body.command or ""),
            cwd=WORKSPACE / PurePosixPath(body.cwd or "."),
            has_input=body.stdin is not None,
            timeout=body.timeout,
            asked=body.command,
        ),
        given=None if body.stdin is None else bytes_of(body.stdin, "stdin"),
        limits=lowered(agents.sandbox_limits, body.limits.model_dump()),
        network=Network(body.network),
        environment=body.environment,
        folder=None if body.folder is None else TreePath.parse(body.folder),
        commit_when=CommitWhen(body.commit),
        wish=Wish(message=body.message, run=body.run),
        keeps_log=body.log,
    )

    async def still(now: Caller) -> None:
        now.require(Action.WRITE, project_id)

    steps, watch = agents.runs.run(caller, project_id, body.agent, wanted), partial(until_refused, request, still)
    if EVENT_STREAM in request.headers.get("accept", ""):
        return await item_stream(_items(steps), watch)
    return await unless_hung_up(request, collected_run(steps), watch)


async def _items(steps: AsyncGenerator[RunStep, None]) -> AsyncGenerator[CommandItem, None]:
    texts = OutputTexts()
    async with aclosing(steps):
        async for step in steps:
            if isinstance(step, Output):
                if (item := texts.item(step)) is not None:
                    yield item
                continue
            if isinstance(step, CommandOutcome):
                for rest in texts.rest():
                    yield rest
            yield run_item(step)
