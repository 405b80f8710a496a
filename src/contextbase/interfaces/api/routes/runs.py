"""Runs: what an agent does about one message, from the queue to what landed."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request

from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.event_stream import EVENT_STREAM, STREAMED_EVENTS, EventStream
from contextbase.interfaces.api.run_events import RunEvents
from contextbase.interfaces.api.session_views import run_details_view
from contextbase.sessions.model import RunId
from contextbase.wire.session import RunEventPage, RunView, ToolExecutionPage, ToolExecutionView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/runs", tags=["sessions"], responses=problem_answers(404, 409))

_LONGEST_CURSOR: Final = 300
_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": STREAMED_EVENTS, "description": "A page, or the stream."}
}


async def _run_id(run: Annotated[UUID, Path(description="The run's id.")]) -> RunId:
    return RunId(run)


NamedRun = Annotated[RunId, Depends(_run_id)]


@router.get("/{run}")
async def show_run(run: NamedRun, caller: AuthenticatedCaller, services: AuthenticatedServices) -> RunView:
    """A run, and its place in the queue until it has ended."""
    return run_details_view(await services.sessions.service.run(caller, run))


@router.get("/{run}/events", response_model=RunEventPage, responses=_STREAMED)
async def read_run_events(
    *,
    run: NamedRun,
    request: Request,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[
        str | None,
        Query(
            description="A cursor that this route gave; unset or `start`: from the run's beginning.",
            max_length=_LONGEST_CURSOR,
        ),
    ] = None,
    limit: Annotated[int, Query(description="Of a page.", ge=1, le=1000)] = 100,
    last_event_id: Annotated[
        str | None, Header(description="Beats `after`, in a stream.", max_length=_LONGEST_CURSOR)
    ] = None,
) -> Any:
    """What happened in the run, in order. The last item is of the type `end`, and has the run as it ended.

    With `Accept: text/event-stream` it goes on to the end of the run: each event's `id` is the cursor to resume from. A
    cursor from before a restore is refused: 409, `cursor_outdated`. The whole payload of an event whose `body` is set:
    `GET /api/v1/events/body?scope=session:ID&number=N`."""
    is_stream = EVENT_STREAM in request.headers.get("accept", "")
    details = await services.sessions.service.run(caller, run)
    events = await RunEvents.started(
        request, services, caller, details.run, (last_event_id or after) if is_stream else after
    )
    return EventStream(events) if is_stream else await events.page_now(limit)


@router.get("/{run}/tools")
async def list_tool_executions(
    *,
    run: NamedRun,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[int, Query(description="A position.", ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ToolExecutionPage:
    """What the agent did with its tools, in order."""
    found = await services.sessions.service.tools(caller, run, after=after, limit=limit + 1)
    return ToolExecutionPage(
        tools=[ToolExecutionView.model_validate(one) for one in found[:limit]],
        next_after=found[limit - 1].position if len(found) > limit else None,
    )


@router.post("/{run}/cancel")
async def cancel_run(run: NamedRun, caller: AuthenticatedCaller, services: AuthenticatedServices) -> RunView:
    """End a run. One that a machine works on ends a moment later, and what it did so far stays in the session's
    folder. A run that has ended stays as it is."""
    await services.sessions.service.cancel(caller, run)
    return await show_run(run, caller, services)
