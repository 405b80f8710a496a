"""Whatever a peer sends, a channel neither hangs nor grows; whatever it is used for, bytes keep their order."""

import asyncio
import contextlib

from hypothesis import given
from hypothesis import strategies as st
from tests.support.channels import channel_pair, raw_peer

from contextbase.channel.frames import FrameDecoder, FrameKind, encoded_frame
from contextbase.channel.multiplexer import ChannelLimits
from contextbase.channel.stream import ChannelStream

BOUND = 60
LIMITS = ChannelLimits(window=1 << 12, streams=8)

frames = st.builds(
    encoded_frame,
    st.integers(0, 20),
    st.sampled_from(FrameKind),
    st.one_of(st.binary(max_size=200), st.just(b"{}"), st.just(bytes(4)), st.just(bytes(8)), st.just(bytes(3000))),
)
garbage = st.lists(st.one_of(frames, st.binary(max_size=300)), max_size=40).map(b"".join)


async def echo(stream: ChannelStream) -> None:
    while data := await stream.read():
        await stream.write(data)


@given(garbage, st.integers(1, 64), st.booleans())
async def test_garbage_ends_the_channel_or_is_taken_and_nothing_hangs(sent: bytes, piece: int, reads: bool) -> None:
    async with asyncio.timeout(BOUND), raw_peer(echo, LIMITS) as peer:

        async def drain() -> None:
            with contextlib.suppress(OSError):
                while await asyncio.get_running_loop().sock_recv(peer.socket, 1 << 16):
                    pass

        reading = asyncio.create_task(drain()) if reads else None
        with contextlib.suppress(OSError):
            for at in range(0, len(sent), piece):
                await peer.send(sent[at : at + piece])
        peer.socket.shutdown(1)
        await asyncio.gather(peer.running, return_exceptions=True)
        assert peer.channel.is_over
        assert not peer.channel._streams
        await peer.channel.handlers_ended()
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_a_decoder_never_holds_more_than_it_was_given(sent: bytes, piece: int) -> None:
    decoder = FrameDecoder()
    with contextlib.suppress(ConnectionError):
        for at in range(0, len(sent), piece):
            for _ in decoder.feed(sent[at : at + piece]):
                pass
            assert decoder.pending <= (1 << 16) + 9 + piece


writes = st.lists(st.tuples(st.integers(0, 4), st.binary(min_size=1, max_size=9000)), max_size=30)


@given(writes, st.booleans())
async def test_any_interleaving_of_streams_delivers_each_streams_bytes_in_order(
    plan: list[tuple[int, bytes]], from_inside: bool
) -> None:
    async with (
        asyncio.timeout(BOUND),
        channel_pair(inside=echo, server=echo, limits=LIMITS) as (server, inside),
    ):
        opener = inside if from_inside else server
        streams = [await opener.open({"number": number}) for number in range(5)]
        reading = [asyncio.create_task(stream.read_all(1 << 20)) for stream in streams]
        expected = [b"".join(data for number, data in plan if number == each) for each in range(5)]

        async def write(each: int) -> None:
            for number, data in plan:
                if number == each:
                    await streams[each].write(data)
                    await asyncio.sleep(0)
            await streams[each].end()

        await asyncio.gather(*(write(each) for each in range(5)))
        assert await asyncio.gather(*reading) == expected
