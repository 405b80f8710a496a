"""HTTP on a stream: what a client sends, however it cuts it up, and what becomes of an application it leaves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.support.scripted_model import listening

from contextbase.models.http_stream import AsgiReceive, AsgiSend, HttpLimits

Scope = dict[str, Any]


async def echo(scope: Scope, receive: AsgiReceive, send: AsgiSend) -> None:
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message["more_body"]:
            break
    said = f"{scope['method']} {scope['path']} {scope['state'].get('who', '')} ".encode() + body
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-from", b"echo")]})
    await send({"type": "http.response.body", "body": said, "more_body": True})
    await send({"type": "http.response.body"})


async def fails(_scope: Scope, _receive: AsgiReceive, _send: AsgiSend) -> None:
    raise RuntimeError("secret detail")


class Endless:
    """Answers for ever, and says when it was cancelled."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self, _scope: Scope, receive: AsgiReceive, send: AsgiSend) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_requests_follow_each_other_on_one_stream() -> None:
    async with listening(echo, {"who": "ann"}) as url, connected(url) as (reader, writer):
        for number in range(3):
            writer.write(b"POST /p%d HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" % number)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert b"POST /p%d ann hello" % number in await reader.readuntil(b"0\r\n\r\n")


async def test_requests_sent_at_once_are_answered_in_order() -> None:
    async with listening(echo) as url, connected(url) as (reader, writer):
        writer.write(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = b""
        while b"GET /b" not in answers:
            answers += await reader.read(4096)
        assert answers.index(b"GET /a") < answers.index(b"GET /b")


async def test_a_chunked_body_in_small_pieces_arrives_whole() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(100):
            yield b"%02d" % number

    async with listening(echo) as url, httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/x", content=pieces())
        assert answer.text.endswith("".join(f"{number:02d}" for number in range(100)))


@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_body_over_the_limit_is_refused(is_announced: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 600
        yield b"x" * 600

    async with listening(echo, limits=HttpLimits(body_bytes=1000)) as url, httpx.AsyncClient() as client:
        answer = await client.post(url, content=b"x" * 1200 if is_announced else pieces())
        assert answer.status_code == 413


async def test_a_body_at_the_limit_is_taken() -> None:
    async with listening(echo, limits=HttpLimits(body_bytes=1000)) as url, httpx.AsyncClient() as client:
        assert (await client.post(url, content=b"x" * 1000)).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [b"\x16\x03\x01garbage\r\n\r\n", b"GET / HTTP/1.1\r\nBroken\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000],
    ids=["tls", "no colon", "long head"],
)
async def test_what_is_not_http_is_refused_and_ends_the_stream(sent: bytes) -> None:
    async with listening(echo) as url, connected(url) as (reader, writer):
        writer.write(sent)
        assert (await reader.read(12)).startswith(b"HTTP/1.1 4")
        while await reader.read(4096):
            pass


async def test_a_request_that_never_ends_is_given_up() -> None:
    async with listening(echo, limits=HttpLimits(read_seconds=0.05)) as url, connected(url) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        assert b" 408 " in await reader.readline()


async def test_a_client_that_goes_away_cancels_the_application() -> None:
    app = Endless()
    async with listening(app) as url:
        async with connected(url) as (_, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await app.began.wait()
            assert not app.ended.is_set()
        await app.ended.wait()


async def test_an_application_that_fails_says_nothing_of_why(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(fails) as url, httpx.AsyncClient() as client:
        answer = await client.get(url)
        assert answer.status_code == 500
        assert "secret detail" not in answer.text
    assert "secret detail" in caplog.text


async def test_an_application_whose_tasks_lose_their_client_has_not_failed(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def tasks(_scope: Scope, _receive: AsgiReceive, send: AsgiSend) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(speaks(send))
        finally:
            ended.set()

    async def speaks(send: AsgiSend) -> None:
        while True:
            try:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            except asyncio.CancelledError:  # it says good-bye, to nobody
                await send({"type": "http.response.body"})
                raise

    async with listening(tasks) as url, connected(url) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(100)
        writer.transport.abort()
        async with asyncio.timeout(60):
            await ended.wait()
    assert "failed on a stream" not in caplog.text


async def test_a_head_request_gets_headers_alone() -> None:
    async with listening(echo) as url, connected(url) as (reader, writer):
        writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"x-from: echo" in head
        assert await reader.read(10) == b""


async def test_a_client_that_waits_for_a_go_ahead_gets_one() -> None:
    async with listening(echo) as url, connected(url) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert b" 100 " in await reader.readline()
        await reader.readline()
        writer.write(b"ok")
        assert b" 200 " in await reader.readline()
