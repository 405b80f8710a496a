"""Bytes to and from a program that listens inside, carried by a relay that runs beside it."""

from typing import Final

from contextbase.errors import Conflict, MachineProblem, Unavailable
from contextbase.sandbox.model import Command, Output, OutputStream
from contextbase.sandbox.ports import Execution

__all__ = ["RelayChannel", "relay_command"]

_MISSING_PROGRAM: Final = 127
_CONNECTED: Final = b"+"
_RELAY: Final = """
import os, socket, sys, threading
peer = socket.socket(socket.AF_UNIX)
try:
    peer.connect(sys.argv[1])
except OSError as error:
    sys.exit(error.strerror)
os.write(1, b"+")
def send():
    while data := os.read(0, 65536):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := peer.recv(65536):
    while data:
        data = data[os.write(1, data):]
os._exit(0)
"""


def relay_command(socket: str) -> Command:
    return Command(argv=("python3", "-I", "-S", "-c", _RELAY, socket), has_input=True)


class RelayChannel:
    """Open once the relay said that it is connected."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._output = execution.output()
        self._left = b""

    async def open(self, socket: str) -> None:
        said = b""
        async for piece in self._output:
            if piece.stream is OutputStream.STDOUT:
                self._left = piece.data.removeprefix(_CONNECTED)
                return
            said += piece.data
        outcome = await self._execution.wait()
        if outcome.exit_code == _MISSING_PROGRAM:
            raise MachineProblem("To reach a socket in a container its image needs python3, which it does not have.")
        reason = said.decode(errors="replace").strip()[-200:]
        raise Unavailable(f"Nobody listens on {socket} in the sandbox: {reason or 'the relay ended'}")

    async def receive(self) -> bytes:
        if self._left:
            data, self._left = self._left, b""
            return data
        while (piece := await anext(self._output, _NOTHING)) is not _NOTHING:
            if piece.stream is OutputStream.STDOUT:
                return piece.data
        return b""

    async def send(self, data: bytes) -> None:
        if not data:
            return
        try:
            await self._execution.write(data)
        except Conflict as error:
            raise Conflict("The other side of this connection is gone.") from error

    async def end_sending(self) -> None:
        await self._execution.end_input()

    async def close(self) -> None:
        await self._execution.kill()
        await self._execution.wait()


_NOTHING: Final = Output(stream=OutputStream.STDERR, data=b"")
