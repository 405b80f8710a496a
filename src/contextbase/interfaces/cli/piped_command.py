"""A command in a sandbox, with our standard input and output as its own."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from contextbase.interfaces.cli.output import error_console
from contextbase.interfaces.cli.run_text import exit_code_of, how_it_ended
from contextbase.sdk import AsyncClient, PipeOptions
from contextbase.vocabulary import OutputStream

if TYPE_CHECKING:
    from contextbase.sdk.aio.command_pipe import AsyncCommandPipe

__all__ = ["piped_command"]

_PIECE: Final = 64 << 10


async def piped_command(server: tuple[str, str], sandbox_id: UUID, command: Sequence[str], options: PipeOptions) -> int:
    """Its exit code."""
    async with AsyncClient(*server) as client:
        sandbox = await client.sandboxes.get(sandbox_id)
        async with sandbox.pipe(command, **options) as pipe:
            sending = asyncio.create_task(_send(pipe))
            try:
                while piece := await pipe.receive():
                    stream = sys.stdout if piece.stream is OutputStream.STDOUT else sys.stderr
                    stream.buffer.write(piece.data)
                    stream.buffer.flush()
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
    if pipe.outcome is None:
        return 1
    if not pipe.outcome.succeeded:
        error_console.print(f"[yellow]{how_it_ended(pipe.outcome)}[/]", highlight=False)
    return exit_code_of(pipe.outcome)


async def _send(pipe: "AsyncCommandPipe") -> None:
    async for piece in _standard_input():
        await pipe.send(piece)
    await pipe.end_input()


async def _standard_input() -> AsyncIterator[bytes]:
    """Read by a thread that nobody waits for: a terminal that nobody types on would keep us otherwise."""
    if sys.stdin is None:  # it is closed
        return
    loop, pieces, number = asyncio.get_running_loop(), asyncio.Queue[bytes](4), sys.stdin.fileno()

    def read() -> None:
        data = b"."
        while data:
            try:
                data = os.read(number, _PIECE)
                asyncio.run_coroutine_threadsafe(pieces.put(data), loop).result()
            except (OSError, RuntimeError):  # it went away, or we did
                return

    threading.Thread(target=read, daemon=True).start()
    while piece := await pieces.get():
        yield piece
