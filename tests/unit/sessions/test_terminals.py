"""Shells of many people in many sessions: none keeps another waiting, and none is there that was not noted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from contextbase.channel.frames import FrameKind
from contextbase.channel.stream import ChannelStream
from contextbase.errors import DatabaseUnavailable
from contextbase.executor.terminals import MOST_TERMINALS
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind
from contextbase.ids import PrincipalId, SystemClock
from contextbase.sandbox.model import TerminalSize
from contextbase.sessions import terminals
from contextbase.sessions.model import SessionId, WorkerState
from contextbase.sessions.terminals import SessionTerminals

_SIZE = TerminalSize(rows=24, columns=80)
_BOUND = 5.0


class World:
    """A machine with sessions, where `silent` has a sandbox that does not answer."""

    def __init__(self) -> None:
        self.silent, self.other = SessionId(uuid4()), SessionId(uuid4())
        self.is_audit_there = True
        self.is_broken = False
        self.streams: list[ChannelStream] = []
        principal = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name="ann")
        self.caller = Caller.chore(principal, frozenset(Action))
        self.terminals = SessionTerminals(
            database=cast("Any", self),
            access=cast("Any", self),
            identity=cast("Any", self),
            clock=SystemClock(),
            host=cast("Any", self),
            repository=cast("Any", self),
        )
        self.machine, self.limits = "here", SimpleNamespace(max_disk=None)
        self.link, self.folders = self, ()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[None]:
        yield

    transaction = connection

    async def at_terminal(self, _connection: object, _caller: object, session_id: SessionId) -> object:
        return SimpleNamespace(id=session_id, owner="user:ann")

    async def note(self, *_: object) -> None:
        if not self.is_audit_there:
            raise DatabaseUnavailable("The database does not answer.")

    async def current(self, caller: Caller) -> Caller:
        if self.is_broken:
            raise RuntimeError("a mistake of ours")
        return caller

    async def worker(self, *_: object) -> object:
        running = WorkerState.RUNNING
        return SimpleNamespace(state=running, desired_state=running, lost_at=None, machine="here")

    async def opened(self, session: Any) -> object:
        if session.id == self.silent:
            await asyncio.Event().wait()
        return self

    async def terminal(self, _size: TerminalSize, *, name: str) -> ChannelStream:
        self.streams.append(ChannelStream(cast("Any", self), len(self.streams), {"name": name}, window=1 << 20))
        return self.streams[-1]

    async def call(self, *_: object) -> None:
        """The new size."""

    async def send_frame(self, stream: int, kind: FrameKind, data: bytes = b"") -> None:
        pass

    def stream_finished(self, stream: ChannelStream) -> None:
        pass


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.terminals.close()


async def test_a_sandbox_that_does_not_answer_keeps_no_other_terminal_waiting(world: World) -> None:
    waiting = asyncio.create_task(world.terminals.shell(world.caller, world.silent, _SIZE))
    await asyncio.sleep(0.01)
    try:
        async with asyncio.timeout(_BOUND):
            assert (await world.terminals.shell(world.caller, world.other, _SIZE)).ended is None
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


async def test_two_tabs_that_open_at_once_have_one_shell(world: World) -> None:
    first, second = await asyncio.gather(*(world.terminals.shell(world.caller, world.other, _SIZE) for _ in range(2)))
    assert len(world.streams) == 1
    assert first is second


async def test_whoever_comes_to_a_sandbox_full_of_shells_is_told_so(world: World) -> None:
    def person(number: int) -> Caller:
        principal = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name=f"p{number}")
        return Caller.chore(principal, frozenset(Action))

    people = [person(number) for number in range(MOST_TERMINALS + 1)]
    shells = await asyncio.gather(*(world.terminals.shell(one, world.other, _SIZE) for one in people))
    [refused] = [shell for shell in shells if shell.ended is not None]
    assert str(MOST_TERMINALS) in (refused.ended or "")
    assert refused.stream.is_cut
    left = next(shell for shell in shells if shell.ended is None)
    await left.end("")
    again = await world.terminals.shell(people[shells.index(refused)], world.other, _SIZE)
    assert again.ended is None


async def test_a_shell_that_could_not_be_noted_is_ended(world: World) -> None:
    world.is_audit_there = False
    with pytest.raises(DatabaseUnavailable):
        await world.terminals.shell(world.caller, world.other, _SIZE)
    assert [stream.is_cut for stream in world.streams] == [True]


async def test_a_shell_whose_rights_cannot_be_checked_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "_CHECK_SECONDS", 0.0)
    world.is_broken = True
    shell = await world.terminals.shell(world.caller, world.other, _SIZE)
    for _ in range(500):
        if shell.ended is None:
            await asyncio.sleep(0.01)
    assert [stream.is_cut for stream in world.streams] == [True]
