"""The listening socket. When the process runs out of files, uvloop stops listening for good; this waits and goes on."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from contextbase.interfaces.api.connections import TOO_MANY, Connections

__all__ = ["Acceptor"]

_log = logging.getLogger(__name__)

_BACKLOG: Final = 2048
_AT_ONCE: Final = 64  # then others have their turn
_PAUSE_SECONDS: Final = 1.0
_MOST_REFUSALS: Final = 64
_REFUSAL_SECONDS: Final = 2.0
_NOBODY: Final = frozenset({errno.EAGAIN, errno.EINTR, errno.ECONNABORTED, errno.ECONNRESET, errno.EPROTO})


class Acceptor:
    """Has what uvicorn asks of a server: `close` and `wait_closed`."""

    def __init__(
        self, listener: socket.socket, connections: Connections, protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._coming: set[asyncio.Task[None]] = set()
        self._refusals: set[_Refusal] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._spare: int | None = None
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        self._resume()

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()
        self._release_spare()
        for refusal in list(self._refusals):
            refusal.end()

    async def wait_closed(self) -> None:
        """Whoever was being let in when it closed is in."""
        await asyncio.gather(*self._coming, return_exceptions=True)

    def _resume(self) -> None:
        self._pause = None
        self._keep_spare()
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, _ = self._listener.accept()
            except OSError as error:
                if error.errno not in _NOBODY:
                    self._on_exhaustion(error)
                return
            client.setblocking(False)
            if self._connections.make_room(coming=len(self._coming)):
                self._let_in(client, self._protocol)
            elif len(self._refusals) < _MOST_REFUSALS:
                self._let_in(client, lambda: _Refusal(self._refusals))
            else:
                _turn_away(client)

    def _let_in(self, client: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        task = self._loop.create_task(self._connect(client, protocol))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _connect(self, client: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        try:
            await self._loop.connect_accepted_socket(protocol, client)
        except OSError as error:  # it went away meanwhile
            _log.debug("a connection broke before it began: %s", error)
            client.close()

    def _on_exhaustion(self, error: OSError) -> None:
        """No file is left for one more connection. The spare one lets it in, to be told so; without a spare, those who
        come wait in the kernel's queue for a while."""
        self._connections.count_closed("no_files")
        if self._spare is not None:
            self._release_spare()
            with suppress(OSError):
                client, _ = self._listener.accept()
                _turn_away(client)
            self._keep_spare()
        if self._spare is None:
            _log.warning("no connection can be accepted for now: %s", error)
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(_PAUSE_SECONDS, self._resume)

    def _keep_spare(self) -> None:
        if self._spare is None:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _release_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None


class _Refusal(asyncio.Protocol):
    """Says that there are too many. Stays until the client has read it: closing at once, with its request unread, would
    reset the connection and lose the answer."""

    def __init__(self, all_of_them: "set[_Refusal]") -> None:
        self._all = all_of_them
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a stream's
        self._transport = transport
        self._all.add(self)
        self._timer = asyncio.get_running_loop().call_later(_REFUSAL_SECONDS, self.end)
        transport.write(TOO_MANY)
        transport.write_eof()

    def connection_lost(self, _: Exception | None) -> None:
        self._timer.cancel()
        self._all.discard(self)

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _turn_away(client: socket.socket) -> None:
    with client, suppress(OSError):
        client.setblocking(False)
        client.send(TOO_MANY)
