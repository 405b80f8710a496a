"""The feed, measured: `python -m bench.feed --readers 1000 --seconds 10 [--json]`.

A server in a process of its own, its readers in another (server-sent events over real HTTP on loopback), a writer in a
third that lands commits through the gate on the same database. Lag is from the commit's time, which is taken before it
is durable, to the moment a reader has the whole event. Each reader checks that it got every commit once, in order.
"""

import argparse
import asyncio
import contextlib
import json
import re
import sys
import time
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import psutil
import uvloop
from tests.support.postgres import reachable_folder
from tests.support.server import ServerProcess, start_server

from contextbase.bootstrap import open_core
from contextbase.config import Settings
from contextbase.gate.model import ChangeAction, CommitRequest, Content, RequestedChange
from contextbase.ids import ContentHash, Seq, TreePath

_SEQ: Final = re.compile(rb'"seq":([0-9]+),"at":"([^"]+)"')
_OPENED_AT_ONCE: Final = 50


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--readers", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--commits-per-second", type=float, default=10.0)
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--read-from", help=argparse.SUPPRESS)  # the readers' process
    options.add_argument("--token", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.read_from:
        uvloop.run(read(arguments.read_from, arguments.token, arguments.readers))
        return
    figures = measure(arguments.readers, arguments.seconds, arguments.commits_per_second)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:28}{value:>16,}")


def measure(readers: int, seconds: float, rate: float) -> dict[str, float]:
    with reachable_folder() as folder, start_server(folder / "data") as server:
        token = (server.data / "owner-token").read_text().strip()
        return asyncio.run(_write(server, token, readers=readers, seconds=seconds, rate=rate))


async def _write(running: ServerProcess, token: str, *, readers: int, seconds: float, rate: float) -> dict[str, float]:
    async with open_core(Settings(data=running.data)) as services:
        owner = await services.identity.authenticate(token)
        project = await services.projects.create(owner, "bench")

        async def land(number: int) -> None:
            content = f"line {number}\n".encode()
            change = RequestedChange(
                action=ChangeAction.WRITE,
                path=TreePath(f"notes/{number}.md"),
                base=Seq(0),
                content=Content(hash=ContentHash.of(content), size=len(content), inline=content),
            )
            request = CommitRequest(project_id=project.id, changes=(change,), message=f"Note {number}.")
            await services.gate.commit(owner, request)

        command = [
            sys.executable,
            "-m",
            "bench.feed",
            "--read-from",
            running.url,
            "--token",
            token,
            "--readers",
            str(readers),
        ]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            ready = await process.stdout.readline()
            assert ready == b"ready\n", ready
            server = psutil.Process(running.process.pid)
            memory, busy, started = server.memory_info().rss, sum(server.cpu_times()[:2]), time.monotonic()
            number = 0
            while time.monotonic() - started < seconds:
                number += 1
                await land(number)
                await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
            took = time.monotonic() - started
            busy = sum(server.cpu_times()[:2]) - busy
            process.stdin.write(f"{number}\n".encode())
            answer = await process.stdout.readline()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    received: dict[str, float] = json.loads(answer)
    return {
        "readers": readers,
        "commits": number,
        "commits_per_second": round(number / took, 1),
        **{name: value for name, value in received.items() if name != "bytes"},
        "bytes_per_second": round(received["bytes"] / took),
        "server_cpu_percent": round(100 * busy / took, 1),
        "server_memory_mb": round(memory / 1e6, 1),
    }


class _Reader(asyncio.Protocol):
    """One stream, read as cheaply as can be: what is measured is the server."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._pending = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lags: list[float] = []
        self.last = 0
        self.out_of_order = 0
        self.bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP is both ways
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._pending += data
        if not self.opened.done():
            if b"retry: 1000\n\n" in self._pending:
                assert self._pending.startswith(b"HTTP/1.1 200 "), self._pending
                self.opened.set_result(None)
                self._pending = b""
            return
        self.bytes += len(data)
        whole, end, self._pending = self._pending.rpartition(b"\n\n")
        for seq, at in _SEQ.findall(whole + end):
            self.lags.append(now - _seconds(at))
            self.out_of_order += int(seq) != self.last + 1
            self.last = int(seq)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(f"refused: {self._pending[:200]!r} {error}"))


async def read(url: str, token: str, count: int) -> None:
    """Open the streams, say so, read until each has the last commit, whose number comes in, and print the figures."""
    gate = asyncio.Semaphore(_OPENED_AT_ONCE)
    readers = await asyncio.gather(*(_open(url, token, gate) for _ in range(count)))
    busy = sum(psutil.Process().cpu_times()[:2])
    print("ready", flush=True)
    last = int(await asyncio.to_thread(sys.stdin.readline))
    for _ in range(300):
        if all(reader.last == last for reader in readers):
            break
        await asyncio.sleep(0.1)
    lags = sorted(lag for reader in readers for lag in reader.lags)
    figures = {
        "received": len(lags),
        "missed": sum(last - reader.last for reader in readers),
        "out_of_order": sum(reader.out_of_order for reader in readers),
        "p50_lag_ms": round(1000 * lags[len(lags) // 2], 1),
        "p99_lag_ms": round(1000 * lags[len(lags) * 99 // 100], 1),
        "max_lag_ms": round(1000 * lags[-1], 1),
        "bytes": sum(reader.bytes for reader in readers),
        "readers_cpu_seconds": round(sum(psutil.Process().cpu_times()[:2]) - busy, 2),
    }
    print(json.dumps(figures), flush=True)


async def _open(url: str, token: str, gate: asyncio.Semaphore) -> _Reader:
    address = urlsplit(url)
    request = (
        f"GET /api/v1/feed?project=bench HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n"
    )
    async with gate:
        loop = asyncio.get_running_loop()
        _, reader = await loop.create_connection(lambda: _Reader(request.encode()), address.hostname, address.port)
        await reader.opened
    return reader


_times: dict[bytes, float] = {}


def _seconds(at: bytes) -> float:
    """Every reader gets the same times: parse each once."""
    if at not in _times:
        _times[at] = datetime.fromisoformat(at.decode()).timestamp()
    return _times[at]


if __name__ == "__main__":
    main()
