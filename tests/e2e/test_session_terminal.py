"""A person's terminal in a session's sandbox, over its socket."""

import asyncio
import json
import os
import pty
import select
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID, uuid4

import pytest
from tests.support.require import require_root
from tests.support.scripted_model import script
from tests.support.server import PROGRAM, ServerProcess, environment, run_cli
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from contextbase.sdk import AsyncClient

pytestmark = pytest.mark.timeout(1200)

_PATIENCE = 180.0  # seconds for each thing that is waited for; the tests wait for a handful


class Screen:
    """What one socket shows."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.seen = b""

    async def attached(self) -> int:
        async with asyncio.timeout(_PATIENCE):
            return int(json.loads(await self._socket.recv())["replayed"])

    async def type(self, text: str) -> None:
        await self._socket.send(text.encode())

    async def shows(self, text: bytes) -> None:
        async with asyncio.timeout(_PATIENCE):
            while text not in self.seen:
                piece = await self._socket.recv()
                assert isinstance(piece, bytes)
                self.seen += piece

    async def ends(self) -> tuple[int | None, str | None]:
        async with asyncio.timeout(_PATIENCE):
            try:
                while True:
                    await self._socket.recv()
            except ConnectionClosed:
                return self._socket.close_code, self._socket.close_reason


@asynccontextmanager
async def opened(server: ServerProcess, token: str, session: UUID) -> AsyncIterator[Screen]:
    address = f"ws{server.url.removeprefix('http')}/api/v1/sessions/{session}/terminal?rows=20&columns=70"
    async with connect(
        address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None, max_size=None
    ) as socket:
        yield Screen(socket)


async def refused(server: ServerProcess, token: str, session: UUID) -> str:
    with pytest.raises(InvalidStatus) as found:
        async with opened(server, token, session):
            pass
    return str(json.loads(found.value.response.body or b"{}")["code"])


async def test_a_shell_outlasts_its_socket_and_ends_with_the_sandbox(server: ServerProcess) -> None:
    require_root()
    owner = (server.data / "owner-token").read_text().strip()
    async with AsyncClient(server.url, owner) as client:
        project = (await client.projects.create(f"p-{uuid4().hex[:10]}")).name
        session = await client.sessions.open(project=project, provider="scripted")
        assert await refused(server, owner, session.id) == "conflict"
        async with asyncio.timeout(_PATIENCE):
            async for _ in session.send(script({"text": "Ready."})):
                pass
        async with opened(server, owner, session.id) as screen:
            await screen.attached()
            await screen.type("here=$((20 + 3)); stty size; echo begun-$here\n")
            await screen.shows(b"20 70\r\n")
            await screen.shows(b"begun-23\r\n")
        async with opened(server, owner, session.id) as screen, opened(server, owner, session.id) as second:
            assert await screen.attached() > 0
            await screen.shows(b"begun-23\r\n")
            await screen.type("echo again-$here\n")
            await screen.shows(b"again-23\r\n")
            await second.attached()
            await second.shows(b"again-23\r\n")  # the same shell
        reader = await client.tokens.create("reader", kind="user", actions=["read"], project=project)
        assert await refused(server, reader.secret, session.id) == "not_found"
        assert await refused(server, "cb_nobody", session.id) == "unauthenticated"
        async with opened(server, owner, session.id) as screen:
            await screen.attached()
            await client.sessions.stop(session.id)
            code, why = await screen.ends()
            assert code == 1008
            assert why
        assert await refused(server, owner, session.id) == "conflict"
        actions = [row.action for row in (await client.audit(project)).records]
        assert actions.count("session.terminal") == 1


class ShellProcess:
    """`contextbase session shell` as its user has it: in a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self.seen = b""

    def type(self, text: bytes) -> None:
        os.write(self._terminal, text)

    def shows(self, text: bytes) -> None:
        deadline = time.monotonic() + _PATIENCE
        while text not in self.seen:
            assert self._read(deadline), f"the command ended and did not show {text!r}: {self.seen!r}"

    def ends(self) -> int:
        """With what it showed last."""
        deadline = time.monotonic() + _PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(_PATIENCE)

    def _read(self, deadline: float) -> bool:
        """False: it has ended."""
        left = max(0.0, deadline - time.monotonic())
        ready = select.select([self._terminal], [], [], left)[0]
        assert ready, f"nothing came of it in {_PATIENCE:g} seconds: {self.seen!r}"
        try:
            piece = os.read(self._terminal, 4096)
        except OSError:  # how Linux says that nobody has the other end any more
            return False
        self.seen += piece
        return bool(piece)


@contextmanager
def shell_of(server: ServerProcess, session: str) -> Iterator[ShellProcess]:
    ours, theirs = pty.openpty()
    command = [PROGRAM, "session", "shell", session, "--data", str(server.data)]
    process = subprocess.Popen(
        command, env=environment(TERM="xterm"), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield ShellProcess(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


async def test_the_command_line_has_the_same_shell_and_may_leave_it_running(server: ServerProcess) -> None:
    require_root()
    owner = (server.data / "owner-token").read_text().strip()
    async with AsyncClient(server.url, owner) as client:
        project = (await client.projects.create(f"p-{uuid4().hex[:10]}")).name
        session = await client.sessions.open(project=project, provider="scripted")
        async with asyncio.timeout(_PATIENCE):
            async for _ in session.send(script({"text": "Ready."})):
                pass
        await asyncio.to_thread(_use_shell, server, str(session.id))
        with shell_of(server, str(session.id)) as shell:
            await asyncio.to_thread(shell.shows, b"$ ")
            await client.sessions.stop(session.id)
            assert await asyncio.to_thread(shell.ends) == 1
            assert b"The terminal was closed" in shell.seen
    piped = run_cli("session", "shell", str(session.id), "--data", str(server.data))
    assert (piped.code, "needs a terminal" in piped.stderr) == (2, True)


def _use_shell(server: ServerProcess, session: str) -> None:
    with shell_of(server, session) as shell:
        shell.shows(b"$ ")
        shell.type(b"here=$((20 + 3)); echo begun-$here\n")
        shell.shows(b"begun-23\r\n")
        shell.type(b"\x1d")  # leaves it as it is
        assert shell.ends() == 0
    with shell_of(server, session) as shell:
        shell.shows(b"begun-23\r\n")
        shell.type(b"echo again-$here\n")
        shell.shows(b"again-23\r\n")
        shell.type(b"exit\n")
        assert shell.ends() == 0
