"""Gate workers as processes of their own, and requests sent to them."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contextbase.db.database import DatabaseAddress

__all__ = ["GateServer", "ServerDied", "gate_server"]

ROOT = Path(__file__).parents[2]


class ServerDied(Exception):
    """The process ended before it answered."""


@dataclass
class GateServer:
    process: Process
    waiting: dict[str, "asyncio.Future[dict[str, Any]]"] = field(default_factory=dict)
    ended: bool = False

    async def ask(self, identity: str, *, who: str, changes: list[tuple[str, str, int]]) -> dict[str, Any]:
        """Send a request whose key is its identity; raises `ServerDied`."""
        if self.ended:
            raise ServerDied
        future = self.waiting[identity] = asyncio.get_running_loop().create_future()
        request = {"id": identity, "who": who, "key": identity, "changes": changes}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError as error:
            if not future.done():
                future.cancel()
            raise ServerDied from error
        return await future

    async def listen(self) -> None:
        assert self.process.stdout is not None
        try:
            while line := await self.process.stdout.readline():
                if not line.endswith(b"\n"):
                    break  # killed while it spoke
                answer = json.loads(line)
                if (future := self.waiting.pop(answer["id"], None)) is not None and not future.done():
                    future.set_result(answer)
        finally:
            self.ended = True
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(ServerDied())


@contextlib.asynccontextmanager
async def gate_server(address: DatabaseAddress, project: str, folder: Path) -> AsyncIterator[GateServer]:
    """A worker that is ready; killed when the block ends."""
    assert address.socket_folder is not None
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.gate_worker", address.socket_folder, address.database, project,
        str(folder), cwd=ROOT, stdin=PIPE, stdout=PIPE,
    )  # fmt: skip
    server = GateServer(process)
    ready = server.waiting["ready"] = asyncio.get_running_loop().create_future()
    listener = asyncio.create_task(server.listen())
    try:
        await asyncio.wait_for(ready, 60)
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listener
