"""How the connection to a Docker engine takes answers that a healthy engine seldom gives."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from tests.support.require import require_root

from contextbase.errors import Conflict, ContextbaseError, InvalidInput, MachineProblem, NotFound, Unavailable
from contextbase.sandbox.docker.connection import EngineConnection

PATIENCE = 60  # seconds; no test waits for it
PING = b"HTTP/1.1 200 OK\r\nApi-Version: 1.47\r\nContent-Length: 2\r\n\r\nOK"


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d Some\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class Peer:
    """The engine's side: answers a ping, and everything else with the given bytes; without any, it falls silent."""

    def __init__(self, said: bytes, *, ping: bytes = PING, hangs_up: bool = False) -> None:
        self._said = said
        self._ping = ping
        self._hangs_up = hangs_up
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = [line for line in head.lower().split("\r\n") if line.startswith("content-length: ")]
                if length:
                    await reader.readexactly(int(length[0].removeprefix("content-length: ")))
                self.asked.append(head.split("\r\n", maxsplit=1)[0])
                is_ping = "/_ping " in self.asked[-1]
                writer.write(self._ping if is_ping else self._said)
                await writer.drain()
                if self._hangs_up and not is_ping:
                    writer.close()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def listening(place: Path, peer: Peer) -> AsyncIterator[None]:
    server = await asyncio.start_unix_server(peer.serve, place)
    try:
        yield
    finally:
        server.close()


@asynccontextmanager
async def connected(folder: Path, peer: Peer, *, patience: float = PATIENCE) -> AsyncIterator[EngineConnection]:
    place = folder / "engine.sock"
    async with listening(place, peer):
        connection = EngineConnection(f"unix://{place}", timeout=patience)
        yield connection
        await connection.close()


@contextmanager
def somebody_else() -> Iterator[None]:
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e")  # a socket's path is short


async def test_calls_speak_the_version_that_the_engine_names(folder: Path) -> None:
    peer = Peer(answer(200, b'{"a": 1}'))
    async with connected(folder, peer) as connection:
        assert await connection.call("GET", "info", about="it", query={"size": "1"}) == {"a": 1}
        assert await connection.call("POST", "more", about="it", body={"b": 2}) == {"a": 1}
        assert peer.asked == [
            "GET /_ping HTTP/1.1",
            "GET /v1.47/info?size=1 HTTP/1.1",
            "POST /v1.47/more HTTP/1.1",
        ]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidInput),
        (403, MachineProblem),
        (404, NotFound),
        (409, Conflict),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
@pytest.mark.parametrize("body", [b'{"message": "it broke"}', b"it broke", b"", b"[]", b'{"other": 1}'])
async def test_a_refusal_is_an_error_of_ours_whatever_its_body(
    folder: Path, status: int, error: type[ContextbaseError], body: bytes
) -> None:
    async with connected(folder, Peer(answer(status, body))) as connection:
        for asked in (
            connection.call("GET", "thing", about="it"),
            connection.hijack("exec/1/start", about="it", body={}),
            anext(connection.stream("archive", about="it", query={})),
        ):
            with pytest.raises(error) as caught:
                await asked
            assert type(caught.value) is error
            assert b"it broke" not in body or status == 403 or "it broke" in caught.value.message


async def test_an_engine_that_falls_silent_is_given_up(folder: Path) -> None:
    async with connected(folder, Peer(b""), patience=0.2) as connection:
        for asked in (
            connection.call("GET", "thing", about="it"),
            connection.hijack("exec/1/start", about="it", body={}),
            anext(connection.stream("archive", about="it", query={})),
        ):
            with pytest.raises(Unavailable, match="in time"):
                await asked


async def test_an_archive_that_breaks_off_is_not_a_whole_one(folder: Path) -> None:
    peer = Peer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", hangs_up=True)
    async with connected(folder, peer) as connection:
        with pytest.raises(Unavailable):
            [piece async for piece in connection.stream("archive", about="it", query={})]


async def test_an_engine_that_names_no_version_has_failed(folder: Path) -> None:
    async with connected(folder, Peer(b"", ping=answer(500, b"starting"))) as connection:
        with pytest.raises(Unavailable, match="starting"):
            await connection.call("GET", "info", about="it")


async def test_an_engine_that_is_not_there_or_not_ours_to_use_is_told(folder: Path) -> None:
    require_root()
    place = folder / "engine.sock"
    connection = EngineConnection(f"unix://{place}", timeout=PATIENCE)
    with pytest.raises(Unavailable, match="No Docker engine"):
        await connection.call("GET", "info", about="it")
    async with listening(place, Peer(answer(200, b"{}"))):
        place.chmod(0o600)
        with somebody_else():
            with pytest.raises(MachineProblem, match="group"):
                await connection.call("GET", "info", about="it")
            with pytest.raises(MachineProblem, match="group"):
                await connection.hijack("exec/1/start", about="it", body={})
        assert await connection.call("GET", "info", about="it") == {}
    await connection.close()
