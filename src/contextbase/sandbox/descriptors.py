"""Waiting for descriptors in the event loop, without reading more than is asked for."""

import asyncio
import os
from collections.abc import Iterable

__all__ = ["Descriptor", "one_of", "read_piece", "write_all"]

_PIECE = 1 << 16


class Descriptor:
    """One of ours: closed once, at the latest when nobody knows it any more."""

    def __init__(self, number: int) -> None:
        self._number = number
        os.set_blocking(number, False)

    @property
    def is_open(self) -> bool:
        return self._number >= 0

    def fileno(self) -> int:
        return self._number

    def close(self) -> None:
        if self.is_open:
            number, self._number = self._number, -1
            os.close(number)

    def __del__(self) -> None:
        self.close()


async def one_of(*, readable: Iterable[int] = (), writable: Iterable[int] = (), done: asyncio.Future[None]) -> None:
    """Until one of the descriptors is ready, or `done` is."""
    loop = asyncio.get_running_loop()
    if done.done():
        return
    ready: asyncio.Future[None] = loop.create_future()

    def wake(*_: object) -> None:
        if not ready.done():
            ready.set_result(None)

    readers, writers = tuple(readable), tuple(writable)
    done.add_done_callback(wake)
    for descriptor in readers:
        loop.add_reader(descriptor, wake)
    for descriptor in writers:
        loop.add_writer(descriptor, wake)
    try:
        await ready
    finally:
        done.remove_done_callback(wake)
        for descriptor in readers:
            loop.remove_reader(descriptor)
        for descriptor in writers:
            loop.remove_writer(descriptor)


def read_piece(descriptor: int, most: int | None = None) -> bytes | None:
    """What is there now; None when nothing is, empty at the end."""
    try:
        return os.read(descriptor, _PIECE if most is None else min(most, _PIECE))
    except BlockingIOError:
        return None
    except OSError:  # a terminal whose other side is closed answers with EIO
        return b""


async def write_all(descriptor: int, data: bytes, *, done: asyncio.Future[None]) -> bool:
    """False when the other side is closed, or `done` came before all was taken."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            await one_of(writable=[descriptor], done=done)
            if done.done():
                return False
        except OSError:  # a pipe without a reader, a terminal that was hung up
            return False
    return True
