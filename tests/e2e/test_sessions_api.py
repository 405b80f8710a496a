"""Sessions over HTTP and in the clients, with a server that works on their runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.support.require import require_root
from tests.support.scripted_model import script
from tests.support.server import ServerProcess

from contextbase.errors import Conflict, CursorOutdated, InvalidInput, NotFound
from contextbase.sdk import AsyncClient, AsyncSession, Client
from contextbase.vocabulary import (
    Land,
    LandingState,
    MessageRole,
    QueueState,
    RunState,
    SendMode,
    SessionState,
    ToolStatus,
)
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


async def test_a_run_that_waits_has_its_place_and_ends_when_it_is_canceled(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    first = await client.sessions.send(session.id, script(WRITE, {"pause": 3000}, {"text": "Never."}))
    second = await client.sessions.send(session.id, script({"text": "Second."}))
    place = (await client.sessions.run(second.id)).place
    assert place is not None
    assert place.state is QueueState.BEHIND
    async with asyncio.timeout(_PATIENCE):
        async with aclosing(client.sessions.events(first.id)) as events:
            async for received in events:
                if isinstance(received.item, EventItem) and received.item.kind == "tool.end":
                    await client.sessions.cancel(second.id)
                    await client.sessions.cancel(first.id)
        ended = [(await ended_run(client, run)).state for run in (first, second)]
    assert ended == [RunState.CANCELED, RunState.CANCELED]
    canceled = await client.sessions.run(first.id)
    assert canceled.landed is not None
    assert (canceled.landed.state, canceled.landed.counts) == (LandingState.WAITS, {"uncommitted": 1})
    assert canceled.landed.because
    assert (await client.sessions.cancel(first.id)).state is RunState.CANCELED
    assert await text_of(client, project, "plan.md") is None


async def test_an_interruption_ends_the_working_run_and_comes_next(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    first = await client.sessions.send(session.id, script(WRITE, {"pause": 3000}, {"text": "Never."}))
    async with asyncio.timeout(_PATIENCE):
        async with aclosing(client.sessions.events(first.id)) as events:
            async for received in events:
                if isinstance(received.item, EventItem) and received.item.kind == "tool.end":
                    break
        items = [item async for item in session.send(script({"text": "Now this."}), mode=SendMode.INTERRUPT)]
    assert isinstance(items[-1], RunEndItem)
    assert (items[-1].run.state, items[-1].run.mode) == (RunState.SUCCEEDED, SendMode.INTERRUPT)
    assert (await client.sessions.run(first.id)).state is RunState.CANCELED


async def ended_run(client: AsyncClient, run: RunView) -> RunView:
    """The last item of its stream."""
    items = [received.item async for received in client.sessions.events(run.id)]
    assert isinstance(items[-1], RunEndItem)
    return items[-1].run


async def test_a_message_sent_twice_with_one_key_is_one_run(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    first = await client.sessions.send(session.id, "Hello.", key="k-1")
    again = await client.sessions.send(session.id, "Hello.", key="k-1")
    assert again.id == first.id
    with pytest.raises(Conflict):
        await client.sessions.send(session.id, "Something else.", key="k-1")
    await client.sessions.send(session.id, "Hello.")
    page = await client.sessions.runs(session.id, limit=1)
    assert ([run.number for run in page.runs], page.next_before) == ([2], 2)
    rest = await client.sessions.runs(session.id, before=page.next_before)
    assert ([run.id for run in rest.runs], rest.next_before) == ([first.id], None)
    await client.sessions.delete(session.id)


async def test_what_a_run_left_lands_when_its_owner_says_so(client: AsyncClient, project: str) -> None:
    session = await opened(client, project, Land.NEVER)
    _, run = await done(session, WRITE)
    assert run.landed is not None
    assert run.landed.state is LandingState.WAITS
    report = await session.land()
    assert (report.state, report.counts) == (LandingState.LANDED, {"written": 1})
    assert await text_of(client, project, "plan.md") == "# Plan\n"
    after = await client.sessions.run(run.id)
    assert after.landed == report
    assert (await session.land()).state is LandingState.NOTHING
    assert (await client.sessions.run(run.id)).landed == report


async def test_what_is_discarded_is_gone_and_the_conversation_goes_on(client: AsyncClient, project: str) -> None:
    session = await opened(client, project, Land.AFTER_REVIEW)
    _, run = await done(session, WRITE, {"text": "Remember the word heron."})
    report = await session.discard()
    assert (report.state, report.counts) == (LandingState.DISCARDED, {"discarded": 1})
    assert (await client.sessions.run(run.id)).landed == report
    assert (await session.discard()).state is LandingState.NOTHING
    look = "{ test -e plan.md || echo absent; grep -l heron .agent_data/scripted/*.json | wc -l; } > seen.md"
    _, run = await done(session, {"tool": "bash", "input": {"command": look}})
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert run.landed is not None
    assert [path.path for path in run.landed.paths] == ["seen.md"]
    await session.land()
    seen = await text_of(client, project, "seen.md")
    assert seen is not None
    assert seen.split() == ["absent", "1"]


async def test_work_is_not_decided_about_while_a_run_works_or_before_one_did(client: AsyncClient, project: str) -> None:
    session = await opened(client, project, Land.NEVER)
    for decide in (session.land, session.discard):
        with pytest.raises(Conflict):
            await decide()
    run = await client.sessions.send(session.id, script(WRITE, {"pause": 3000}))
    for decide in (session.land, session.discard):
        with pytest.raises(Conflict):
            await decide()
    await client.sessions.cancel(run.id)
    async with asyncio.timeout(_PATIENCE):
        await ended_run(client, run)


async def test_a_closed_session_takes_no_messages_and_a_deleted_one_is_gone(client: AsyncClient, project: str) -> None:
    session = await opened(client, project)
    assert (await client.sessions.pin(session.id)).pinned
    assert not (await client.sessions.unpin(session.id)).pinned
    assert (await client.sessions.stop(session.id)).state is SessionState.OPEN
    assert (await client.sessions.close(session.id)).state is SessionState.CLOSED
    with pytest.raises(Conflict):
        await client.sessions.send(session.id, "Hello.")
    assert [one.id for one in (await client.sessions.list(project)).sessions] == [session.id]
    await client.sessions.delete(session.id)
    assert (await client.sessions.list(project)).sessions == []
    with pytest.raises(NotFound):
        await client.sessions.get(session.id)


async def test_a_session_has_the_agent_that_was_asked_for(client: AsyncClient, project: str) -> None:
    known = await client.agents.list()
    names = {agent.name: agent for agent in known.agents}
    assert names["scripted"].is_installed
    assert names["claude-code"].is_installed is (names["claude-code"].how_to_install is None)
    assert (await client.sessions.create(project)).provider == known.default
    assert (await client.sessions.create(project, provider="claude")).provider == "claude-code"
    with pytest.raises(InvalidInput) as refused:
        await client.sessions.create(project, provider="nobody")
    assert refused.value.details["providers"] == list(names)


async def test_a_program_gets_its_own_options_and_no_others(client: AsyncClient, project: str) -> None:
    claude = next(agent for agent in (await client.agents.list()).agents if agent.name == "claude-code")
    assert {"permissionMode", "mcp"} <= {option.name for option in claude.options}
    made = await client.sessions.create(project, provider="claude", options={"permissionMode": "plan"})
    for wrong in ({"permissionMode": "x"}, {"agent": "plan"}, {"cwd": "/"}):
        with pytest.raises(InvalidInput) as refused:
            await client.sessions.create(project, provider="claude-code", options=wrong)
        assert "permissionMode" in refused.value.details["options"]
        with pytest.raises(InvalidInput):
            await client.sessions.send(made.id, "Hello.", options=wrong)
    with pytest.raises(InvalidInput):
        await client.sessions.send(made.id, "Hello.", provider="opencode", options={"permissionMode": "plan"})
    run = await client.sessions.send(made.id, "Hello.", provider="codex-cli", options={"approvalMode": "never"})
    assert (run.provider, run.options) == ("codex-cli", {"approvalMode": "never"})
    await client.sessions.stop(made.id)


async def test_files_of_a_message_are_the_sessions_own(client: AsyncClient, project: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.csv").write_text("c,d\n")
    session = await opened(client, project)
    look = script({"tool": "bash", "input": {"command": "cat upload/a*.csv > seen.txt"}}, {"text": "Seen."})
    for file in (tmp_path / "a.csv", other / "a.csv", tmp_path / "a.csv"):
        [*_, end] = [item async for item in session.send(look, attachments=[file])]
        assert end.type == "end"
        assert end.run.state == "succeeded", end.run.message
    seen = await client.files.read(project, "seen.txt")
    assert seen.content == "c,d\na,b\n"  # a-2.csv and a.csv: the third was there
    assert not any("upload" in str(run.landed) for run in (await client.sessions.runs(session.id)).runs)
    assert session.run is not None
    usage = (await client.sessions.run(session.run.id)).usage
    assert usage is not None
    assert (usage.requests, usage.output_tokens > 0) == (2, True)
    with pytest.raises(InvalidInput):
        await client.sessions.send(session.id, look, attachments=[tmp_path / "a.csv", other / "a.csv"])
    with pytest.raises(InvalidInput):
        await client.sessions.send(session.id, look, attachments=[tmp_path / "missing"])
    for name in ("a\\b.csv", "..\\..\\a.csv", "\uff0e\uff0e", "e\u0301.csv", "a\u2028b"):
        (tmp_path / name).write_text("x")
        with pytest.raises(InvalidInput):
            await client.sessions.send(session.id, look, attachments=[tmp_path / name])


async def test_a_cursor_of_another_session_or_of_nothing_is_refused(client: AsyncClient, project: str) -> None:
    runs = []
    for _ in range(2):
        session = await opened(client, project)
        runs.append(await client.sessions.send(session.id, "Hello."))
        await client.sessions.cancel(runs[-1].id)
    first, second = runs
    async with aclosing(client.sessions.events(first.id)) as events:
        cursor = (await anext(events)).cursor
    for run, after, error in (
        (second, cursor, InvalidInput),
        (first, "nonsense", InvalidInput),
        (first, f"{cursor}9999", CursorOutdated),
    ):
        with pytest.raises(error):
            await anext(client.sessions.events(run.id, after=after))


async def test_a_token_for_the_project_alone_is_enough(
    client: AsyncClient, server: ServerProcess, project: str
) -> None:
    made = await client.tokens.create("ann", kind="user", actions=["read", "write"], project=project)
    async with AsyncClient(server.url, made.secret) as ann:
        session = await opened(ann, project)
        run = await ann.sessions.send(session.id, "Hello.")
        await ann.sessions.cancel(run.id)
        assert (await ended_run(ann, run)).state is RunState.CANCELED
        assert [one.id for one in (await ann.sessions.list()).sessions] == [session.id]
    assert session.id not in [one.id for one in (await client.sessions.list(project)).sessions]


async def test_pages_of_events_end_like_the_stream(client: AsyncClient, server: ServerProcess, project: str) -> None:
    session = await opened(client, project)
    _, run = await done(session, {"text": "One."}, {"text": "Two."})
    await done(session, {"text": "Later."})
    token = (server.data / "owner-token").read_text().strip()
    items, query = [], {"limit": "2"}
    async with httpx.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as http:
        more = True
        while more:
            page = (await http.get(f"/api/v1/runs/{run.id}/events", params=query)).raise_for_status().json()
            items += page["items"]
            more, query = page["more"], {"limit": "2", "after": page["cursor"]}
    streamed = [received.item async for received in client.sessions.events(run.id)]
    assert items == [item.model_dump(mode="json") for item in streamed]


def test_the_blocking_client_follows_a_run(server: ServerProcess) -> None:
    require_root()
    token = (server.data / "owner-token").read_text().strip()
    with Client(server.url, token) as client:
        name = client.projects.create(f"p-{uuid4().hex[:10]}").name
        session = client.sessions.open(project=name, provider="scripted")
        items = list(session.send(script(WRITE, {"text": "Done."})))
        assert isinstance(items[-1], RunEndItem)
        assert session.run is not None
        assert session.run.state is RunState.SUCCEEDED
        assert client.sessions.open(session.id).view.last_run == 1
