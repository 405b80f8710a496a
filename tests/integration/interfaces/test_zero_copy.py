"""Parts of files that go to a client by the system alone."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextbase.interfaces.api.zero_copy import send_part

SIZE = 32 << 20


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        yield ours, theirs


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


async def test_a_part_arrives_whole_though_the_socket_holds_less(
    ends: tuple[socket.socket, socket.socket], file: int
) -> None:
    ours, theirs = ends
    told: list[int] = []
    start, count = 12_345, SIZE - 20_000
    sending = asyncio.create_task(
        send_part(ours.fileno(), file, start, count, sent=told.append, is_closed=lambda: False)
    )
    got = bytearray()
    while len(got) < count:
        got += await asyncio.get_running_loop().sock_recv(theirs, 1 << 20)
    await sending
    assert got == os.pread(file, count, start)
    assert (sum(told), len(told) > 1) == (count, True)


async def test_a_reader_that_is_gone_ends_it(ends: tuple[socket.socket, socket.socket], file: int) -> None:
    ours, theirs = ends
    sending = asyncio.create_task(
        send_part(ours.fileno(), file, 0, SIZE, sent=lambda _: theirs.close(), is_closed=lambda: False)
    )
    with pytest.raises(OSError, match=r"."):
        await sending


async def test_a_connection_that_we_close_ends_it(ends: tuple[socket.socket, socket.socket], file: int) -> None:
    """Its reader takes nothing, and never goes away."""
    told: list[int] = []
    with pytest.raises(ConnectionResetError):
        await send_part(ends[0].fileno(), file, 0, SIZE, sent=told.append, is_closed=lambda: bool(told))


async def test_a_file_that_got_shorter_is_not_taken_for_whole(
    ends: tuple[socket.socket, socket.socket], file: int
) -> None:
    ours, _ = ends
    with pytest.raises(OSError, match=r"shorter"):
        await send_part(ours.fileno(), file, SIZE - 100, 200, sent=lambda _: None, is_closed=lambda: False)
