"""A connection to a program inside, over a socket that was made there."""

import asyncio
import socket
from typing import Final

from contextbase.errors import Conflict

__all__ = ["SocketChannel"]

_PIECE: Final = 1 << 16


class SocketChannel:
    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection

    async def receive(self) -> bytes:
        try:
            return await asyncio.get_running_loop().sock_recv(self._connection, _PIECE)
        except ConnectionError:
            return b""

    async def send(self, data: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._connection, data)
        except ConnectionError:
            raise Conflict("The program on the other side is gone.") from None

    async def end_sending(self) -> None:
        try:
            self._connection.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other side is gone

    async def close(self) -> None:
        self._connection.close()
