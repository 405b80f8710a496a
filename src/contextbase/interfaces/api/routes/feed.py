"""The feed: a page, a long poll, or a stream of server-sent events."""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request

from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.event_stream import EVENT_STREAM, STREAMED_EVENTS, EventStream
from contextbase.interfaces.api.feed_reader import AUTHORISED_SECONDS, FeedConnection
from contextbase.interfaces.api.feed_stream import FeedSource
from contextbase.interfaces.api.item_views import item_view
from contextbase.streams.feed_model import FeedPage
from contextbase.wire.feed import FeedPageView
from contextbase.wire.project import NAME_OR_ID

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/feed", tags=["feed"], responses=problem_answers(404, 409))

LONGEST_WAIT_SECONDS: Final = 60
_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": STREAMED_EVENTS, "description": "A page, or the stream."}
}


@router.get("", response_model=FeedPageView, responses=_STREAMED)
async def read_feed(
    *,
    request: Request,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    project: Annotated[str, Query(description="The project's name or id.", max_length=100, pattern=NAME_OR_ID)],
    after: Annotated[
        str | None, Query(description="A cursor; `start`: from the first commit; unset: from now.", max_length=100)
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    wait: Annotated[
        float, Query(description="Seconds to wait for something new.", ge=0, le=LONGEST_WAIT_SECONDS)
    ] = 0.0,
    path: Annotated[
        str | None, Query(description="Only what happens to this path, or below it.", max_length=1024)
    ] = None,
    last_event_id: Annotated[str | None, Header(description="Beats `after`, in a stream.", max_length=100)] = None,
) -> Any:
    """What changed after a cursor, of what this token may see.

    With `Accept: text/event-stream` it goes on for as long as both sides like: each event's `id` is the cursor to
    resume from. A cursor from before a restore of the project is refused: 409, `cursor_outdated`.
    """
    project_id = await services.projects.id_of(caller, project)
    below = TreePath.parse(path) if path is not None else None
    reader = FeedConnection(request, services, project_id, below)
    if EVENT_STREAM in request.headers.get("accept", ""):
        heads, cursor = await reader.start(last_event_id or after)
        return EventStream(FeedSource(reader, heads, cursor))
    return _view(await _long_poll(reader, after, limit, wait))


async def _long_poll(reader: FeedConnection, after: str | None, limit: int, wait: float) -> FeedPage:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + wait
    heads, cursor = await reader.start(after)
    page = await reader.read_now(heads, cursor, limit)
    if page.items or page.more or wait == 0:
        return page
    async with reader.following(heads) as follower:
        while not (page.items or follower.ended or clock.time() >= deadline):
            page = await reader.read(follower, page.cursor, limit)
            if not page.items:
                await follower.wait(page.cursor, min(deadline - clock.time(), AUTHORISED_SECONDS))
    return page


def _view(page: FeedPage) -> FeedPageView:
    return FeedPageView(items=[item_view(item.body) for item in page.items], cursor=str(page.cursor), more=page.more)
