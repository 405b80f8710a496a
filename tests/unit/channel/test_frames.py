"""Frames and greetings: what is taken, and what ends the connection."""

from collections.abc import Awaitable, Callable

import pytest

from contextbase.channel.errors import ChannelClosed, ProtocolViolation
from contextbase.channel.frames import LONGEST_FRAME, FrameDecoder, FrameKind, encoded_frame
from contextbase.channel.greeting import Greeting, common_version, received_greeting


def test_frames_come_out_as_they_went_in_however_they_are_cut() -> None:
    sent = encoded_frame(1, FrameKind.OPEN, b"{}") + encoded_frame(1, FrameKind.DATA, b"abc")
    decoder = FrameDecoder()
    frames = [frame for at in range(len(sent)) for frame in decoder.feed(sent[at : at + 1])]
    assert [(frame.stream, frame.kind, frame.data) for frame in frames] == [
        (1, FrameKind.OPEN, b"{}"),
        (1, FrameKind.DATA, b"abc"),
    ]
    assert decoder.pending == 0


@pytest.mark.parametrize(
    "head",
    [
        pytest.param((1, 9, 0), id="unknown kind"),
        pytest.param((1, FrameKind.DATA, LONGEST_FRAME + 1), id="too long"),
        pytest.param((1, FrameKind.DATA, 0), id="empty data"),
        pytest.param((1, FrameKind.CREDIT, 3), id="half a number"),
        pytest.param((0, FrameKind.DATA, 1), id="data of the channel itself"),
        pytest.param((1, FrameKind.PING, 8), id="ping of a stream"),
        pytest.param((1, FrameKind.OPEN, 1 << 15), id="too much about a stream"),
    ],
)
def test_a_frame_nobody_sends_is_refused_by_its_head_alone(head: tuple[int, int, int]) -> None:
    number, kind, length = head
    data = number.to_bytes(4) + bytes([kind]) + length.to_bytes(4)
    with pytest.raises(ProtocolViolation):
        list(FrameDecoder().feed(data))


def receiving(*pieces: bytes) -> Callable[[], Awaitable[bytes]]:
    left = list(pieces)

    async def receive() -> bytes:
        return left.pop(0) if left else b""

    return receive


async def test_a_greeting_is_read_with_what_came_after_it() -> None:
    sent = Greeting(versions=(2, 1), about={"build": "x"}).encoded() + b"rest"
    greeting, rest = await received_greeting(receiving(sent[:5], sent[5:]))
    assert (greeting.versions, greeting.about, rest) == ((2, 1), {"build": "x"}, b"rest")


def test_the_newest_version_that_both_speak_is_used() -> None:
    assert common_version(Greeting(versions=(3, 2)), Greeting(versions=(2, 1))) == 2
    with pytest.raises(ProtocolViolation):
        common_version(Greeting(versions=(3, 2)), Greeting(versions=(1,)))


@pytest.mark.parametrize(
    "line",
    [b"{}\n", b"hello\n", b"[1]\n", b"x" * 5000, b"\xff\n", b"[" * 4000 + b"\n"],
    ids=["empty", "text", "list", "long", "bytes", "deep"],
)
async def test_what_is_not_a_greeting_ends_the_connection(line: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        await received_greeting(receiving(line))


async def test_a_peer_that_leaves_before_it_greets_is_gone() -> None:
    with pytest.raises(ChannelClosed):
        await received_greeting(receiving(b'{"prot'))
