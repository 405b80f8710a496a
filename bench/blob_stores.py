"""How fast blobs go into the local folder and into S3, next to the least any program must do for the same.

The local store is measured against a plain file written and flushed (no name by hash, no folder flushed, no
create-only), S3 against bare HTTP PUTs to signed URLs (no hash computed, no create-only, no checksum).
"""

import asyncio
import http.client
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlsplit

import obstore

from contextbase.durable import flush
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.s3 import S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder

__all__ = ["measure_local", "measure_s3"]

_MEGABYTE: Final = 1_000_000
_ROUNDS: Final = 3

Put = Callable[[int, bytes], Awaitable[None]]  # the writer's number, the content
Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    name: str
    size: int
    count: int
    writers: int
    in_megabytes: bool = False  # a rate in MB/s instead of puts/s


_WARM_UP: Final = Load(name="warm-up", size=16, count=1000, writers=8)
LOADS: Final = (
    Load(name="puts_per_s_2kb_1_writer", size=2_000, count=150, writers=1),
    Load(name="puts_per_s_2kb_8_writers", size=2_000, count=400, writers=8),
    Load(name="puts_per_s_300kb_1_writer", size=300_000, count=60, writers=1),
    Load(name="puts_per_s_300kb_8_writers", size=300_000, count=120, writers=8),
    Load(name="mb_per_s_64mb_1_writer", size=64 * _MEGABYTE, count=2, writers=1, in_megabytes=True),
)


async def measure_local(folder: Path) -> dict[str, Figures]:
    """Median rates of the local store and of plain files, both in `folder` (empty, on the disk in question)."""
    threads = ThreadPoolExecutor(max_workers=8)
    loop = asyncio.get_running_loop()

    async def plain(_writer: int, content: bytes) -> None:
        await loop.run_in_executor(threads, _write_file, folder / os.urandom(8).hex(), content)

    with threads:
        return await _compare({"store": _put_into(LocalBlobStore(folder / "blobs")), "plain_write_and_flush": plain})


async def measure_s3(connection: S3Connection, folder: Path) -> dict[str, Figures]:
    """Median rates of the S3 store and of bare HTTP PUTs to the same bucket; `folder` is for spooling."""
    bucket = connection.open(total_timeout=timedelta(seconds=60))
    address = urlsplit(connection.url)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    clients = [kind(address.netloc, timeout=60) for _ in range(8)]
    threads = ThreadPoolExecutor(max_workers=8)
    loop = asyncio.get_running_loop()

    async def bare(writer: int, content: bytes) -> None:
        url = await obstore.sign_async(bucket, "PUT", f"bare/{os.urandom(8).hex()}", timedelta(minutes=5))
        await loop.run_in_executor(threads, _put_over_http, clients[writer], url, content)

    with threads:
        try:
            store = S3BlobStore(connection, spool=SpoolFolder(folder))
            return await _compare({"store": _put_into(store), "bare_http_put": bare})
        finally:
            for client in clients:
                client.close()


def _put_into(store: BlobStore) -> Put:
    async def put(_writer: int, content: bytes) -> None:
        await store.put(_stream(content))

    return put


async def _stream(content: bytes) -> AsyncIterator[bytes]:
    for offset in range(0, len(content), 256 * 1024):
        yield content[offset : offset + 256 * 1024]


async def _compare(candidates: dict[str, Put]) -> dict[str, Figures]:
    """Rounds alternate between the candidates, so that a busy moment of the machine hits them alike."""
    figures: dict[str, Figures] = {name: {} for name in candidates}
    for put in candidates.values():  # connections and folders that are made but once
        await _rate(put, _WARM_UP, [os.urandom(_WARM_UP.size) for _ in range(_WARM_UP.count)])
    for load in LOADS:
        rates: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(_ROUNDS):
            for name, put in candidates.items():
                contents = [os.urandom(load.size) for _ in range(load.count)]
                rates[name].append(await _rate(put, load, contents))
        for name in candidates:
            figures[name][load.name] = round(median(rates[name]), 1)
    return figures


async def _rate(put: Put, load: Load, contents: Sequence[bytes]) -> float:
    async def write(writer: int) -> None:
        for content in contents[writer :: load.writers]:
            await put(writer, content)

    started = time.perf_counter()
    await asyncio.gather(*(write(writer) for writer in range(load.writers)))
    seconds = time.perf_counter() - started
    return load.count * load.size / _MEGABYTE / seconds if load.in_megabytes else load.count / seconds


def _write_file(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        flush(file.fileno())


def _put_over_http(client: http.client.HTTPConnection, url: str, content: bytes) -> None:
    parts = urlsplit(url)
    client.request("PUT", f"{parts.path}?{parts.query}", body=content)
    with client.getresponse() as answer:
        body = answer.read()
        assert answer.status == http.HTTPStatus.OK, body
