"""How answers leave the server."""

import asyncio

from contextbase.interfaces.api.protocol import OneWrite


class Sink(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_aborted = True


async def test_what_is_written_in_one_turn_leaves_in_one_piece_and_in_order() -> None:
    sink = Sink()
    transport = OneWrite(sink)
    transport.write(b"head ")
    transport.write(b"body")
    assert sink.writes == []
    await asyncio.sleep(0)
    transport.write(b"next")
    await asyncio.sleep(0)
    assert sink.writes == [b"head body", b"next"]


async def test_a_long_answer_is_not_held() -> None:
    sink = Sink()
    transport = OneWrite(sink)
    for _ in range(8):
        transport.write(b"x" * 20_000)
    assert sum(map(len, sink.writes)) > 100_000
    await asyncio.sleep(0)
    assert sum(map(len, sink.writes)) == 160_000


async def test_closing_writes_what_is_held_and_breaking_off_does_not() -> None:
    closed, broken = Sink(), Sink()
    one, other = OneWrite(closed), OneWrite(broken)
    one.write(b"last words")
    one.close()
    other.write(b"last words")
    other.abort()
    await asyncio.sleep(0)
    assert (closed.is_closed, b"last words" in closed.writes) == (True, True)
    assert (broken.is_aborted, b"last words" in broken.writes) == (True, False)


async def test_nothing_is_written_to_who_has_gone_away() -> None:
    sink = Sink()
    OneWrite(sink).write(b"hello")
    sink.close()
    await asyncio.sleep(0)
    assert sink.writes == []
