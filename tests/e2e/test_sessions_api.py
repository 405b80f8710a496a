"""Sessions over HTTP and in the clients, with a server that works on their runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from uuid import uuid4

import pytest
from tests.support.agent_world import script
from tests.support.require import require_root
from tests.support.server import ServerProcess

from contextbase.sdk import AsyncClient, AsyncSession
from contextbase.vocabulary import Land, LandingState, MessageRole, RunState, ToolStatus
from contextbase.wire.feed import EventItem
from contextbase.wire.session import RunEndItem, RunItem, RunView

pytestmark = pytest.mark.timeout(1200)

WRITE = {"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}}
_PATIENCE = 600.0


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[AsyncClient]:
    require_root()
    token = (server.data / "owner-token").read_text().strip()
    async with AsyncClient(server.url, token) as client:
        yield client


@pytest.fixture
async def project(client: AsyncClient) -> str:
    return (await client.projects.create(f"p-{uuid4().hex[:10]}")).name


async def opened(client: AsyncClient, project: str, land: Land = Land.AUTO) -> AsyncSession:
    return await client.sessions.open(project=project, provider="scripted", land=land)


async def done(session: AsyncSession, *steps: dict[str, object]) -> tuple[list[RunItem], RunView]:
    """What a run told, and the run as it ended."""
    async with asyncio.timeout(_PATIENCE):
        items = [item async for item in session.send(script(*steps))]
    assert isinstance(items[-1], RunEndItem)
    return items, items[-1].run


async def text_of(client: AsyncClient, project: str, path: str) -> str | None:
    found = (await client.checkout(project, paths=[path], contents=True)).entries
    return found[0].text if found else None


async def test_a_message_is_streamed_to_its_end_and_its_work_lands(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    items, run = await done(session, WRITE, {"text": "The plan is there."})
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert run.landed is not None
    assert (run.landed.state, run.landed.counts) == (LandingState.LANDED, {"written": 1})
    assert [(path.path, path.status) for path in run.landed.paths] == [("plan.md", "written")]
    assert await text_of(client, project, "plan.md") == "# Plan\n"
    kinds = [item.kind for item in items if isinstance(item, EventItem)]
    assert (kinds[0], kinds[-1]) == ("message.user", "run.state")
    messages = (await session.messages()).messages
    assert messages[0].role is MessageRole.USER
    assert "The plan is there." in messages[-1].parts[-1].text
    [tool] = (await client.sessions.tools(run.id)).tools
    assert (tool.name, tool.status) == ("write", ToolStatus.OK)
    assert (await client.sessions.run(run.id)).place is None


async def test_a_reader_goes_on_by_its_cursor_without_loss_or_doubles(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    await done(session, {"text": "Before."})
    _, run = await done(session, WRITE, {"text": "One."}, {"text": "Two."})
    await done(session, {"text": "After."})
    whole = [received async for received in client.sessions.events(run.id)]
    numbers = [one.item.number for one in whole if isinstance(one.item, EventItem)]
    assert numbers == sorted(set(numbers))
    assert {one.item.payload["run_id"] for one in whole if isinstance(one.item, EventItem)} == {str(run.id)}
    for cut in range(len(whole)):
        rest = [received async for received in client.sessions.events(run.id, after=whole[cut].cursor)]
        expected = [one.item for one in whole[cut + 1 :]] or [whole[-1].item]
        assert [one.item for one in rest] == expected, cut


async def test_a_live_reader_that_is_cut_off_goes_on_where_it_was(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    run = await client.sessions.send(session.id, script(WRITE, {"pause": 1}, {"text": "Late."}))
    cursor, read = None, []
    async with asyncio.timeout(_PATIENCE):
        while not read or not isinstance(read[-1], RunEndItem):
            async with aclosing(client.sessions.events(run.id, after=cursor)) as events:
                async for received in events:  # one item for each connection
                    cursor = received.cursor
                    read.append(received.item)
                    break
    whole = [received.item async for received in client.sessions.events(run.id)]
    assert read == whole
