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

from contextbase.sdk import AsyncClient
from contextbase.vocabulary import RunState

pytestmark = pytest.mark.timeout(1200)

API = "/api/v1"
PATIENCE = 600.0
LONG_WORK = script({"tool": "write", "input": {"path": "a.md", "content": "1\n"}}, {"pause": 3000}, {"text": "Never."})
EVENTS = {"Accept": "text/event-stream"}


@dataclass(frozen=True, kw_only=True)
class Member:
    """Somebody with the role member in the project, and a token of theirs."""

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

    async def member(self) -> Member:
        slug = f"m-{uuid4().hex[:10]}"
        await self.owner.users.create(slug)
        await self.owner.roles.grant(slug, "member", f"project:{self.project}")
        made = await self.owner.tokens.create(slug, kind="user", actions=["read", "write"])
        client = await self.stack.enter_async_context(AsyncClient(self.server.url, made.secret))
        headers = {"Authorization": f"Bearer {made.secret}"}
        raw = httpx.AsyncClient(base_url=self.server.url, headers=headers, timeout=PATIENCE)
        return Member(slug=slug, client=client, raw=await self.stack.enter_async_context(raw))

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


@pytest.mark.parametrize("how", ["disabled", "role taken away"])
async def test_whoever_is_out_has_nothing_open_and_nothing_at_work(world: World, how: str) -> None:
    member = await world.member()
    session, run = await world.at_work(member)
    sandbox = await member.client.sandboxes.create(world.project)
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        opened = await member.streams(
            stack,
            f"{API}/events?scope=session:{session.id}",
            f"{API}/chat/{session.id}/stream",
            f"{API}/runs/{run.id}/events",
            f"{API}/feed?project={world.project}",
        )
        terminal = await stack.enter_async_context(sandbox.terminal("echo begun; sleep 3000"))
        assert b"begun" in await terminal.receive()
        mark = f"31{uuid4().int % 10**9}"
        await sandbox.exec(f"setsid sleep {mark} >/dev/null 2>&1 < /dev/null &")
        assert runs(mark)
        command = {"command": "sleep 3000"}
        running = asyncio.create_task(member.raw.post(f"{API}/sandboxes/{sandbox.id}/exec", json=command))
        if how == "disabled":
            await world.owner.users.update(member.slug, disabled=True)
        else:
            await world.owner.roles.revoke(member.slug, "member", f"project:{world.project}")
        for lines in opened:
            await to_the_end(lines)
        # Hung up, or ended with its sandbox: whichever comes first.
        while await terminal.receive():
            pass
        await running
        assert (await member.raw.get(f"{API}/sessions/{session.id}")).status_code in {401, 403, 404}
        ended = [received.item async for received in world.owner.sessions.events(run.id)][-1].run
        assert ended.state is RunState.CANCELED
        assert "its owner was disabled, or may not work here any more" in ended.message
        while runs(mark):  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(0.2)


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
