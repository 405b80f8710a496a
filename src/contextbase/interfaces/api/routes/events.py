"""Events of several scopes at once: a page, a long poll, or a stream of server-sent events."""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints

from contextbase.bootstrap import CoreServices
from contextbase.identity.model import Caller
from contextbase.interfaces.api.answers import begun
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.event_stream import EVENT_STREAM, STREAMED_EVENTS, EventStream
from contextbase.interfaces.api.events_reader import EventsReader
from contextbase.interfaces.api.feed_reader import AUTHORISED_SECONDS
from contextbase.interfaces.api.item_views import scoped_item_view
from contextbase.interfaces.api.scope_readers import private_scope, project_of, scope_readers
from contextbase.streams.bodies import BodyContent
from contextbase.streams.feed_model import Viewpoint
from contextbase.wire.event import MOST_SCOPES, SCOPE_PATTERN, ScopedPageView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/events", tags=["events"], responses=problem_answers(404, 409))

LONGEST_WAIT_SECONDS: Final = 60
_LONGEST_CURSOR: Final = 300 * MOST_SCOPES
_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": STREAMED_EVENTS, "description": "A page, or the stream."}
}
_BODY: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The whole payload."}
}

ScopeName = Annotated[str, StringConstraints(pattern=SCOPE_PATTERN, max_length=120)]


@router.get("", response_model=ScopedPageView, responses=_STREAMED)
async def read_events(
    *,
    request: Request,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    scope: Annotated[
        list[ScopeName],
        Query(
            description="What to read, several times if you like: `project:NAME`, `workspace:ID`, `user:me`, `system`, "
            "`session:ID`.",
            min_length=1,
            max_length=MOST_SCOPES,
        ),
    ],
    after: Annotated[
        str | None,
        Query(
            description="A cursor that this route gave; `start`: from the beginning; unset: from now. A scope that is "
            "not in the cursor is read from now on.",
            max_length=_LONGEST_CURSOR,
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    wait: Annotated[
        float, Query(description="Seconds to wait for something new.", ge=0, le=LONGEST_WAIT_SECONDS)
    ] = 0.0,
    last_event_id: Annotated[
        str | None, Header(description="Beats `after`, in a stream.", max_length=_LONGEST_CURSOR)
    ] = None,
) -> Any:
    """What is new in each of the scopes, tagged with its scope, and one cursor for all of them.

    With `Accept: text/event-stream` it goes on for as long as both sides like: each event's `id` is the cursor to
    resume from. A cursor from before a restore is refused: 409, `cursor_outdated`; `details.scope` says which.
    """
    reader = EventsReader(await scope_readers(request, services, caller, scope))
    if EVENT_STREAM in request.headers.get("accept", ""):
        await reader.start(last_event_id or after)
        return EventStream(reader)
    await reader.start(after)
    return await _long_poll(reader, limit, wait)


async def _long_poll(reader: EventsReader, limit: int, wait: float) -> ScopedPageView:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + wait
    items, more = await reader.page_now(limit)
    if not (items or more or wait == 0):
        async with reader.following():
            while not (items or reader.ended or clock.time() >= deadline):
                items = await reader.page(limit)
                if not items:
                    await reader.wait(min(deadline - clock.time(), AUTHORISED_SECONDS))
    views = [scoped_item_view(item.scope, item.body) for item in items]
    return ScopedPageView(items=views, cursor=reader.cursor, more=more)


@router.get("/body", response_class=StreamingResponse, responses=_BODY)
async def read_body(
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    scope: Annotated[ScopeName, Query(description="The scope of the event.")],
    number: Annotated[int, Query(description="The event's number.", ge=1, lt=2**63)],
) -> StreamingResponse:
    """The whole payload of an event whose `body` is set: its item has a preview only."""
    content = await _body(services, caller, scope, number)
    return StreamingResponse(
        await begun(content.pieces),
        headers={"Content-Length": str(content.body.size), "ETag": f'"{content.body.hash}"'},
        media_type="application/json",
    )


async def _body(services: CoreServices, caller: Caller, scope: str, number: int) -> BodyContent:
    project = project_of(scope)
    if project is None:
        readable = await services.scope_access.readable(caller, private_scope(caller, scope))
        return await services.streams.body(readable, number)
    project_id = await services.projects.id_of(caller, project)
    async with services.database.connection() as connection:
        authority = await services.gate.authority(connection, caller, project_id)
    return await services.feed.body(Viewpoint(authority=authority), project_id, number)
