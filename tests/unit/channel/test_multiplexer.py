"""Streams over one connection: order, ends, slow readers, rules, heartbeats."""

import asyncio
import contextlib
import json

import pytest
from tests.support.channels import channel_pair, raw_peer

from contextbase.channel.errors import ChannelClosed, ProtocolViolation, StreamCut
from contextbase.channel.frames import FrameDecoder, FrameKind, encoded_frame
from contextbase.channel.multiplexer import ChannelLimits
from contextbase.channel.stream import ChannelStream

BOUND = 60


async def echo(stream: ChannelStream) -> None:
    while data := await stream.read():
        await stream.write(data)


async def test_a_stream_carries_bytes_both_ways_to_its_end() -> None:
    seen = []

    async def opened(stream: ChannelStream) -> None:
        seen.append(stream.about)
        await echo(stream)

    async with asyncio.timeout(BOUND), channel_pair(inside=opened) as (server, _):
        stream = await server.open({"kind": "call", "path": "/x"})
        await stream.write(b"hello")
        await stream.end()
        assert await stream.read_all(100) == b"hello"
        assert seen == [{"kind": "call", "path": "/x"}]


async def test_lines_are_read_one_by_one_and_bounded() -> None:
    async with asyncio.timeout(BOUND), channel_pair(inside=echo) as (server, _):
        stream = await server.open({})
        await stream.write(b"one\ntwo")
        await stream.end()
        assert await stream.read_line(10) == b"one\n"
        assert await stream.read_line(10) == b"two"
        other = await server.open({})
        await other.write(b"x" * 100)
        with pytest.raises(ProtocolViolation):
            await other.read_line(50)


async def test_a_stream_nobody_reads_stops_its_writer_and_no_other_stream() -> None:
    limits = ChannelLimits(window=1 << 12)
    stuck = asyncio.Event()

    async def opened(stream: ChannelStream) -> None:
        if stream.about.get("slow"):
            await stuck.wait()
        await echo(stream)

    async with asyncio.timeout(BOUND), channel_pair(inside=opened, limits=limits) as (server, _):
        slow = await server.open({"slow": True})
        writing = asyncio.create_task(slow.write(bytes(1 << 16)))
        for _ in range(20):
            quick = await server.open({})
            await quick.write(b"quick")
            await quick.end()
            assert await quick.read_all(10) == b"quick"
        assert not writing.done()
        assert len(slow._inbox) == 0
        stuck.set()
        reading = asyncio.create_task(slow.read_all(1 << 20))
        await writing
        await slow.end()
        assert len(await reading) == 1 << 16


async def test_what_was_answered_is_read_to_the_end_though_the_question_was_not() -> None:
    async def opened(stream: ChannelStream) -> None:
        await stream.write(b"answer")

    async with asyncio.timeout(BOUND), channel_pair(inside=opened) as (server, _):
        stream = await server.open({})
        await stream.write(b"a question that nobody reads")
        assert await stream.read() == b"answer"
        assert await stream.read() == b""


async def test_a_cut_is_seen_by_who_reads_and_who_writes_on_the_other_side() -> None:
    seen: list[str] = []
    done = asyncio.Event()

    async def opened(stream: ChannelStream) -> None:
        try:
            await stream.read()
        except StreamCut:
            seen.append("read")
        try:
            await stream.write(b"x")
        except StreamCut:
            seen.append("write")
        done.set()

    async with asyncio.timeout(BOUND), channel_pair(inside=opened) as (server, _):
        stream = await server.open({})
        await stream.cut()
        await done.wait()
        assert seen == ["read", "write"]


async def test_a_handler_that_fails_cuts_its_stream_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def opened(stream: ChannelStream) -> None:
        if stream.about.get("bad"):
            raise ValueError("bad")
        await echo(stream)

    async with asyncio.timeout(BOUND), channel_pair(inside=opened) as (server, _):
        bad = await server.open({"bad": True})
        with pytest.raises(StreamCut):
            await bad.read()
        good = await server.open({})
        await good.write(b"good")
        assert await good.read() == b"good"
    assert "the handler of a stream failed" in caplog.text


async def test_opening_waits_while_as_many_as_allowed_are_open() -> None:
    async with asyncio.timeout(BOUND), channel_pair(inside=echo, limits=ChannelLimits(streams=2)) as (server, _):
        first, _second = [await server.open({}) for _ in range(2)]
        third = asyncio.create_task(server.open({}))
        await asyncio.sleep(0)
        assert not third.done()
        await first.end()
        assert await first.read() == b""
        await third


async def test_everything_ends_with_the_channel() -> None:
    async with asyncio.timeout(BOUND), channel_pair(inside=echo, limits=ChannelLimits(streams=1)) as (server, inside):
        stream = await server.open({})
        waiting = asyncio.create_task(server.open({}))
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        inside.close()
        with pytest.raises(StreamCut):
            await reading
        with pytest.raises(ChannelClosed):
            await waiting
        with pytest.raises(ChannelClosed):
            await server.open({})


async def test_a_peer_that_says_nothing_is_gone() -> None:
    async with asyncio.timeout(BOUND), raw_peer(limits=ChannelLimits(ping=0.01, silence=0.1)) as peer:
        await peer.running
        assert peer.channel.is_over


async def test_a_peer_that_never_reads_is_gone_and_nothing_piles_up() -> None:
    async with asyncio.timeout(BOUND), raw_peer(echo, limits=ChannelLimits(ping=0.02, silence=0.3)) as peer:
        ping = encoded_frame(0, FrameKind.PING, bytes(8))
        with contextlib.suppress(ConnectionError):
            for number in range(2, 200, 2):  # its own pings keep it alive; its echoes fill the socket
                await peer.send(encoded_frame(number, FrameKind.OPEN, b"{}") + ping)
                for _ in range(4):
                    await peer.send(encoded_frame(number, FrameKind.DATA, bytes(1 << 16)))
        await peer.running
        assert len(peer.channel._outgoing) < 1 << 20


async def test_a_ping_is_answered_with_its_own_bytes() -> None:
    async with asyncio.timeout(BOUND), raw_peer() as peer:
        await peer.send(encoded_frame(0, FrameKind.PING, b"12345678"))
        decoder = FrameDecoder()
        while True:
            data = await asyncio.get_running_loop().sock_recv(peer.socket, 4096)
            frames = [frame for frame in decoder.feed(data) if frame.kind is FrameKind.PONG]
            if frames:
                assert frames[0].data == b"12345678"
                return


OPEN = encoded_frame(2, FrameKind.OPEN, b"{}")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(encoded_frame(1, FrameKind.OPEN, b"{}"), id="a stream of ours"),
        pytest.param(OPEN + OPEN, id="a stream twice"),
        pytest.param(encoded_frame(4, FrameKind.OPEN, b"{}") + OPEN, id="an older number"),
        pytest.param(encoded_frame(2, FrameKind.OPEN, b"[]"), id="about is not an object"),
        pytest.param(encoded_frame(2, FrameKind.OPEN, b"[" * 10_000), id="about is too deep"),
        pytest.param(encoded_frame(6, FrameKind.DATA, b"x"), id="never opened"),
        pytest.param(OPEN + encoded_frame(2, FrameKind.DATA, bytes(1 << 16)) * 5, id="more than the window"),
        pytest.param(OPEN + encoded_frame(2, FrameKind.END) * 2, id="ended twice"),
        pytest.param(
            OPEN + encoded_frame(2, FrameKind.END) + encoded_frame(2, FrameKind.DATA, b"x"), id="after its end"
        ),
        pytest.param(OPEN + encoded_frame(2, FrameKind.CREDIT, b"\xff" * 4), id="credit for nothing"),
        pytest.param(
            b"".join(encoded_frame(n, FrameKind.OPEN, b"{}") for n in range(2, 260, 2)), id="too many streams"
        ),
    ],
)
async def test_a_peer_that_breaks_a_rule_is_cut(sent: bytes) -> None:
    async def wait(stream: ChannelStream) -> None:
        await stream.wait_until_cut()

    async with asyncio.timeout(BOUND), raw_peer(wait) as peer:
        await peer.send(sent)
        with pytest.raises(ProtocolViolation):
            await peer.running


async def test_streams_opened_and_cut_in_a_flood_do_not_pile_up() -> None:
    never = asyncio.Event()

    async def stubborn(_: ChannelStream) -> None:
        await never.wait()

    async with asyncio.timeout(BOUND), raw_peer(stubborn, ChannelLimits(streams=4)) as peer:
        with contextlib.suppress(ConnectionError):
            for number in range(2, 2000, 2):
                await peer.send(encoded_frame(number, FrameKind.OPEN, b"{}") + encoded_frame(number, FrameKind.CUT))
        never.set()
        with pytest.raises(ProtocolViolation):
            await peer.running


async def test_about_is_sent_as_json() -> None:
    async with asyncio.timeout(BOUND), raw_peer() as peer:
        await peer.channel.open({"kind": "model"})
        data = await asyncio.get_running_loop().sock_recv(peer.socket, 4096)
        [frame] = FrameDecoder().feed(data)
        assert (frame.kind, json.loads(frame.data)) == (FrameKind.OPEN, {"kind": "model"})
