"""Run as a program by tests that kill it or measure it: `python -m tests.support.store_worker ACTION FOLDER …`."""

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil

from contextbase.storage.blobs.integrity import PIECE_SIZE
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.s3 import S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def put_for_ever(folder: Path) -> None:
    """Put one blob after the other and name each when it is acknowledged."""
    store = LocalBlobStore(folder)
    while True:
        say((await store.put(random_content(3))).hash)


async def put_and_hang(folder: Path) -> None:
    """Come to a halt in the middle of a put."""

    async def halting() -> AsyncIterator[bytes]:
        async for piece in random_content(3):
            yield piece
        say("in the middle")
        await asyncio.Event().wait()

    await LocalBlobStore(folder).put(halting())


async def measure(store: BlobStore, pieces: int) -> None:
    """Put and read back so many MiB, and say by how much memory grew at its peak."""
    await store.verify((await store.put(random_content(9))).hash)  # whatever is loaded or made but once
    before = psutil.Process().memory_info().rss
    stored = await store.put(random_content(pieces))
    size = await store.verify(stored.hash)
    growth = peak_memory() - before
    await store.delete(stored.hash)
    say(json.dumps({"size": size, "growth": growth}))


def peak_memory() -> int:
    """The most bytes of memory this program ever held."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in ru_maxrss what the parent held before it became this program.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


async def random_content(pieces: int) -> AsyncIterator[bytes]:
    noise = os.urandom(PIECE_SIZE - 8)
    for number in range(pieces):
        yield number.to_bytes(8, "big") + noise


def main(action: str, folder: str, pieces: str = "0") -> None:
    match action:
        case "put-for-ever":
            asyncio.run(put_for_ever(Path(folder)))
        case "put-and-hang":
            asyncio.run(put_and_hang(Path(folder)))
        case "measure-local":
            asyncio.run(measure(LocalBlobStore(Path(folder)), int(pieces)))
        case "measure-s3":
            connection = S3Connection(**json.load(sys.stdin))
            asyncio.run(measure(S3BlobStore(connection, spool=SpoolFolder(Path(folder))), int(pieces)))


if __name__ == "__main__":
    main(*sys.argv[1:])
