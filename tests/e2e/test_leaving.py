"""Somebody is disabled, loses a role, or a share: what they have open ends, and what works for them stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest
from tests.support.require import require_root
from tests.support.scripted_model import script
from tests.support.server import ServerProcess

from contextbase.sdk import AsyncClient, AsyncSandbox
from contextbase.vocabulary import RunState
from contextbase.wire.token import ActionName

pytestmark = pytest.mark.timeout(1200)

API = "/api/v1"
PATIENCE = 600.0
LONG_WORK = script({"tool": "write", "input": {"path": "a.md", "content": "1\n"}}, {"pause": 3000}, {"text": "Never."})
EVENTS = {"Accept": "text/event-stream"}


@dataclass(frozen=True, kw_only=True)
class Member:
    """Somebody with a role in the project, or an agent that such a person made, and a token of theirs."""

    slug: str
    client: AsyncClient
    raw: httpx.AsyncClient

    async def streams(self, stack: AsyncExitStack, *places: str) -> list[AsyncIterator[str]]:
        """Open ones, each past its first line."""
        opened = []
        for place in places:
            answer = await stack.enter_async_context(self.raw.stream("GET", place, headers=EVENTS))
            assert answer.status_code == 200, await answer.aread()
            lines = aiter(answer.aiter_lines())
            await anext(lines)
            opened.append(lines)
        return opened


@dataclass(frozen=True, kw_only=True)
class World:
    server: ServerProcess
    owner: AsyncClient
    project: str
    stack: AsyncExitStack

    async def member(self, role: str = "member") -> Member:
        slug = f"m-{uuid4().hex[:10]}"
        await self.owner.users.create(slug)
        await self.owner.roles.grant(slug, role, f"project:{self.project}")
        made = await self.owner.tokens.create(slug, kind="user", actions=["read", "write", "admin"])
        return await self.caller(slug, made.secret)

    async def agent_of(self, maker: AsyncClient, *actions: ActionName) -> Member:
        name = f"a-{uuid4().hex[:10]}"
        may: list[ActionName] = ["read", "write", *actions]
        made = await maker.tokens.create(name, kind="agent", project=self.project, actions=may)
        return await self.caller(name, made.secret)

    async def caller(self, name: str, secret: str) -> Member:
        client = await self.stack.enter_async_context(AsyncClient(self.server.url, secret))
        headers = {"Authorization": f"Bearer {secret}"}
        raw = httpx.AsyncClient(base_url=self.server.url, headers=headers, timeout=PATIENCE)
        return Member(slug=name, client=client, raw=await self.stack.enter_async_context(raw))

    async def out(self, member: Member, how: str, role: str = "member") -> None:
        if how == "disabled":
            await self.owner.users.update(member.slug, disabled=True)
        else:
            await self.owner.roles.revoke(member.slug, role, f"project:{self.project}")

    async def canceled(self, run: Any) -> None:
        """Wait until the run has ended, because whoever it worked for is out."""
        ended = [received.item async for received in self.owner.sessions.events(run.id)][-1].run
        assert ended.state is RunState.CANCELED
        assert "its owner was disabled, or may not work here any more" in ended.message

    async def at_work(self, member: Member) -> tuple[Any, Any]:
        """A session of theirs, and a run in it whose agent is in the middle of its work."""
        session = await member.client.sessions.create(self.project, provider="scripted")
        run = await member.client.sessions.send(session.id, LONG_WORK)
        async for received in member.client.sessions.events(run.id):
            if getattr(received.item, "kind", "") == "tool.end":
                break
        return session, run


@pytest.fixture
async def world(server: ServerProcess) -> AsyncIterator[World]:
    require_root()
    token = (server.data / "owner-token").read_text().strip()
    async with AsyncExitStack() as stack:
        owner = await stack.enter_async_context(AsyncClient(server.url, token))
        project = (await owner.projects.create(f"p-{uuid4().hex[:10]}")).name
        yield World(server=server, owner=owner, project=project, stack=stack)


async def to_the_end(lines: AsyncIterator[str]) -> None:
    async for _ in lines:
        pass


def runs(mark: str) -> bool:
    """Whether a process left running in a sandbox is there."""
    return any(mark in process.info["cmdline"] for process in psutil.process_iter(["cmdline"], ad_value=[]))


async def left_running(sandbox: AsyncSandbox) -> str:
    """A process in it that nobody waits for: it ends with the sandbox alone."""
    mark = f"31{uuid4().int % 10**9}"
    await sandbox.exec(f"setsid sleep {mark} >/dev/null 2>&1 < /dev/null &")
    async with asyncio.timeout(PATIENCE):
        while not runs(mark):  # noqa: ASYNC110 - the shell did not wait for it
            await asyncio.sleep(0.05)
    return mark


async def gone(mark: str) -> None:
    while runs(mark):  # noqa: ASYNC110 - another process ends it
        await asyncio.sleep(0.2)


HOW = pytest.mark.parametrize("how", ["disabled", "role taken away"])


@HOW
async def test_whoever_is_out_hears_no_more_and_has_nothing_at_work(world: World, how: str) -> None:
    member = await world.member()
    session, run = await world.at_work(member)
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        opened = await member.streams(
            stack,
            f"{API}/events?scope=session:{session.id}",
            f"{API}/chat/{session.id}/stream",
            f"{API}/runs/{run.id}/events",
            f"{API}/feed?project={world.project}",
        )
        await world.out(member, how)
        for lines in opened:
            await to_the_end(lines)
        assert (await member.raw.get(f"{API}/sessions/{session.id}")).status_code in {401, 403, 404}
        await world.canceled(run)


@HOW
async def test_the_sandbox_of_whoever_is_out_stops(world: World, how: str) -> None:
    member = await world.member()
    sandbox = await member.client.sandboxes.create(world.project)
    mark = await left_running(sandbox)
    async with asyncio.timeout(PATIENCE):
        await world.out(member, how)
        await gone(mark)


@HOW
async def test_whoever_is_out_is_hung_up_on_in_a_sandbox_that_goes_on(world: World, how: str) -> None:
    """It belongs to an agent of the owner's, which an administrator of the project may use."""
    admin, agent = await world.member("project_admin"), await world.agent_of(world.owner)
    its = await agent.client.sandboxes.create(world.project)
    mark = await left_running(its)
    sandbox = await admin.client.sandboxes.get(its.id)
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        terminal = await stack.enter_async_context(sandbox.terminal("echo begun; sleep 3000"))
        assert b"begun" in await terminal.receive()
        command = {"command": "sleep 3000"}
        place = f"{API}/sandboxes/{its.id}/exec"
        running = asyncio.create_task(admin.raw.post(place, json=command))
        streamed = await stack.enter_async_context(admin.raw.stream("POST", place, json=command, headers=EVENTS))
        lines = aiter(streamed.aiter_lines())
        await anext(lines)
        await world.out(admin, how, "project_admin")
        await to_the_end(lines)
        while await terminal.receive():
            pass
        await running
        assert runs(mark), "the agent's own work goes on"
        await its.exec("true")


@HOW
async def test_the_agents_of_whoever_is_out_are_out_too(world: World, how: str) -> None:
    admin = await world.member("project_admin")
    agent, other = await world.agent_of(admin.client), await world.agent_of(world.owner)
    manager = await world.agent_of(admin.client, "admin")
    made_by_it = await world.agent_of(manager.client)
    acting = await admin.client.sandboxes.create(world.project, agent=f"a-{uuid4().hex[:10]}")
    marks = [await left_running(one) for one in (await agent.client.sandboxes.create(world.project), acting)]
    kept = await left_running(await other.client.sandboxes.create(world.project))
    _, run = await world.at_work(agent)
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        (feed,) = await agent.streams(stack, f"{API}/feed?project={world.project}")
        await world.out(admin, how, "project_admin")
        await to_the_end(feed)
        await world.canceled(run)
        for mark in marks:
            await gone(mark)
    project = f"{API}/projects/{world.project}"
    for one in (agent, manager, made_by_it):
        assert (await one.raw.get(project)).status_code == 401
    assert (await other.raw.get(project)).status_code == 200
    assert runs(kept)
    made = await world.owner.tokens.create(agent.slug, kind="agent", project=world.project, actions=["read"])
    again = await world.caller(agent.slug, made.secret)
    assert (await again.raw.get(project)).status_code == 200, "somebody else answers for it now"
    assert (await agent.raw.get(project)).status_code == 401, "and the one who left still has its old token"


async def test_whom_a_session_is_not_shared_with_any_more_hears_no_more_of_it(world: World) -> None:
    owner, guest = await world.member(), await world.member()
    session, run = await world.at_work(owner)
    await owner.client.session_shares.share(session.id, guest.slug, "drive")
    behind = await guest.client.sessions.send(session.id, script({"text": "Never said."}))
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        opened = await guest.streams(
            stack,
            f"{API}/events?scope=session:{session.id}",
            f"{API}/chat/{session.id}/stream",
            f"{API}/runs/{run.id}/events",
        )
        await owner.client.session_shares.unshare(session.id, guest.slug)
        for lines in opened:
            await to_the_end(lines)
        assert (await guest.raw.get(f"{API}/sessions/{session.id}")).status_code == 404
        assert (await owner.client.sessions.run(behind.id)).state is RunState.CANCELED
        assert (await owner.client.sessions.run(run.id)).state is RunState.RUNNING, "the owner's goes on"
        await owner.client.sessions.cancel(run.id)
