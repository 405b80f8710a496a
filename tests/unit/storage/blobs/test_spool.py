import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.files import below

from contextbase.errors import BlobCorrupted
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE
from contextbase.storage.blobs.spool import SpoolFolder

LONG = bytes(range(256)) * (3 * PIECE_SIZE // 256) + b"end"


async def stream(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_short_content_stays_in_memory(tmp_path: Path) -> None:
    async with SpoolFolder(tmp_path / "spool").spooled(stream(b"short")) as spooled:
        assert spooled.hash == ContentHash.of(b"short")
        assert [piece async for piece in spooled] == [b"short"]
        with pytest.raises(TypeError):
            _ = spooled.file

    assert not (tmp_path / "spool").exists()


async def test_a_spool_without_memory_makes_a_file_even_of_nothing(tmp_path: Path) -> None:
    async with SpoolFolder(tmp_path, memory_limit=0).spooled(stream(b"")) as spooled:
        assert spooled.file.read_bytes() == b""

    assert below(tmp_path) == []


async def test_long_content_is_in_a_private_file_until_the_block_ends(tmp_path: Path) -> None:
    async with SpoolFolder(tmp_path).spooled(stream(LONG)) as spooled:
        assert (spooled.hash, spooled.size) == (ContentHash.of(LONG), len(LONG))
        assert spooled.file.read_bytes() == LONG
        assert spooled.file.stat().st_mode & 0o777 == 0o600
        for _ in range(2):
            assert b"".join([piece async for piece in spooled]) == LONG

    assert below(tmp_path) == []


async def test_what_was_spooled_is_not_spooled_again(tmp_path: Path) -> None:
    async with SpoolFolder(tmp_path / "a").spooled(stream(LONG)) as first:
        async with SpoolFolder(tmp_path / "b").spooled(first, expected=first.hash) as second:
            assert second is first
        assert first.file.exists()
        with pytest.raises(BlobCorrupted):
            async with SpoolFolder(tmp_path / "b").spooled(first, expected=ContentHash.of(b"other")):
                pass

    assert not (tmp_path / "b").exists()


async def test_a_failure_while_the_content_is_used_removes_the_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="while in use"):
        async with SpoolFolder(tmp_path).spooled(stream(LONG)):
            raise RuntimeError("while in use")

    assert below(tmp_path) == []


async def test_a_cancellation_at_any_moment_leaves_no_file(tmp_path: Path) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        for offset in range(0, len(LONG), 100_000):
            await asyncio.sleep(0)
            yield LONG[offset : offset + 100_000]

    async def use() -> None:
        async with SpoolFolder(tmp_path).spooled(slowly()) as spooled:
            async for _ in spooled:
                pass

    for steps in range(0, 60, 3):
        task = asyncio.create_task(use())
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert below(tmp_path) == []
