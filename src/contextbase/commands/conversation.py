"""Talking with a command: what it reads and what it writes, at the same time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from contextbase.commands.program_log import ProgramLog
from contextbase.errors import Conflict
from contextbase.sandbox.model import Output
from contextbase.sandbox.ports import Execution

__all__ = ["answers"]


async def answers(
    execution: Execution, data: bytes | None, log: ProgramLog | None = None
) -> AsyncGenerator[Output, None]:
    """What the command writes while it is given `data` to read; `log` takes it, too."""
    writing = None if data is None else asyncio.create_task(_write(execution, data))
    try:
        async for piece in execution.output():
            if log is not None:
                log.take(piece)
            yield piece
    finally:
        if writing is not None:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


async def _write(execution: Execution, data: bytes) -> None:
    with suppress(Conflict):  # it does not read to the end: its own business
        await execution.write(data)
    await execution.end_input()
