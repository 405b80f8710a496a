"""Processes that are killed in the middle of a put, and contents far larger than the memory they may take."""

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from random import Random

from contextbase.ids import ContentHash
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder

REPOSITORY = Path(__file__).parents[2]
WORKER = [sys.executable, "-m", "tests.support.store_worker"]

MEBIBYTE = 1024 * 1024
# Enough to tell streaming from buffering. Set it to 2048 for the figure the documentation promises.
STREAMED_MEBIBYTES = int(os.environ.get("CONTEXTBASE_TEST_STREAM_MIB", "256"))


async def content() -> AsyncIterator[bytes]:
    yield b"a blob put later"


def killed_worker(action: str, folder: Path, *, after: float = 0) -> list[str]:
    """The lines a worker wrote before it was killed, some seconds after the first."""
    with subprocess.Popen([*WORKER, action, folder], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        first = worker.stdout.readline()
        time.sleep(after)
        worker.kill()
        *lines, _unfinished = (first + worker.stdout.read()).split("\n")
        return lines


async def test_a_put_killed_in_the_middle_leaves_no_blob_and_no_harm(tmp_path: Path) -> None:
    assert killed_worker("put-and-hang", tmp_path) == ["in the middle"]
    store = LocalBlobStore(tmp_path)

    assert [blob async for blob in store.list()] == []
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    temporary = SpoolFolder(tmp_path / "tmp")
    assert await temporary.remove_stale() == 0  # it might belong to a living process
    assert await temporary.remove_stale(older_than=timedelta(seconds=-1)) == 1
    stored = await store.put(content())
    assert [blob async for blob in store.list()] == [stored]


async def test_what_was_acknowledged_before_a_kill_is_there_and_all_that_is_there_is_whole(tmp_path: Path) -> None:
    random = Random(7)
    acknowledged: set[ContentHash] = set()
    for _ in range(8):
        lines = killed_worker("put-for-ever", tmp_path, after=random.uniform(0, 0.05))
        acknowledged.update(map(ContentHash.parse, lines))
    store = LocalBlobStore(tmp_path)

    there = {blob.hash async for blob in store.list()}

    assert len(acknowledged) >= 8
    assert acknowledged <= there
    assert {await store.verify(content_hash) for content_hash in there} == {3 * MEBIBYTE}


def test_a_large_content_streams_through_the_local_store_in_little_memory(tmp_path: Path) -> None:
    measured = json.loads(
        subprocess.check_output([*WORKER, "measure-local", tmp_path, str(STREAMED_MEBIBYTES)], cwd=REPOSITORY)
    )

    assert measured["size"] == STREAMED_MEBIBYTES * MEBIBYTE
    assert measured["growth"] < 64 * MEBIBYTE


def test_a_large_content_streams_through_s3_in_little_memory(tmp_path: Path, s3_connection: S3Connection) -> None:
    connection = {
        name: getattr(s3_connection, name)
        for name in ("bucket", "prefix", "endpoint", "access_key_id", "secret_access_key", "allow_http")
    }
    measured = json.loads(
        subprocess.check_output(
            [*WORKER, "measure-s3", tmp_path, str(STREAMED_MEBIBYTES)],
            cwd=REPOSITORY,
            input=json.dumps(connection).encode(),
        )
    )

    assert measured["size"] == STREAMED_MEBIBYTES * MEBIBYTE
    assert measured["growth"] < 64 * MEBIBYTE
