"""Files that go from the disk to a client without a way through this program: the ASGI extension for it, on sockets."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from contextbase.threads import in_thread

__all__ = ["ZERO_COPY", "send_part"]

ZERO_COPY: Final = "http.response.zerocopysend"
"""Its name as an extension and as a message, by the ASGI specification."""

_AT_ONCE: Final = 8 << 20
_LOOK_SECONDS: Final = 1.0  # after which a connection is looked at that takes nothing


async def send_part(
    connection: int, file: int, start: int, count: int, *, sent: Callable[[int], None], is_closed: Callable[[], bool]
) -> None:
    """Send bytes of an open file over a socket that does not block, and tell how many each time. Raises `OSError` if
    the other side is gone, or the file is shorter. No thread waits for a slow reader."""
    own = os.dup(connection)  # the loop knows the other one as its transport's
    try:
        while count:
            if is_closed():
                raise ConnectionResetError("The connection was closed.")
            try:
                moved = await in_thread(os.sendfile, own, file, start, min(count, _AT_ONCE))
            except BlockingIOError:
                await _room(own)
                continue
            if not moved:
                raise OSError("The file got shorter while it was sent.")
            start, count = start + moved, count - moved
            sent(moved)
    finally:
        os.close(own)


async def _room(connection: int) -> None:
    """Return when the socket takes more, or after a while."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(connection, ready.set)
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(ready.wait(), _LOOK_SECONDS)
    finally:
        loop.remove_writer(connection)
