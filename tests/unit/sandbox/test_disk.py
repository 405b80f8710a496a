"""Who fills the disk is found, and who does not is left alone."""

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contextbase.sandbox import disk
from contextbase.sandbox.native.launcher import disk_use

MOST = 1 << 20


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the disk is said to have, last; and no time between two looks."""
    room = [100 * MOST]
    monkeypatch.setattr(disk_use.DiskUse, "_room", lambda _: room[-1])
    monkeypatch.setattr(disk, "_PAUSE", 0)
    return room


async def watch(folder: Path) -> tuple["asyncio.Task[None]", list[str]]:
    told: list[str] = []
    task = asyncio.create_task(disk.watch_disk(folder, MOST, lambda: told.append("exceeded")))
    await asyncio.sleep(0.05)
    return task, told


async def test_what_is_written_after_the_start_counts(tmp_path: Path, free: list[int]) -> None:
    task, told = await watch(tmp_path)
    (tmp_path / "big").write_bytes(os.urandom(2 * MOST))
    os.sync()
    free.append(97 * MOST)
    async with asyncio.timeout(30):
        await task
    assert told == ["exceeded"]


async def test_what_others_write_does_not_count(tmp_path: Path, free: list[int]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "inside").mkdir()
    (outside / "big").write_bytes(os.urandom(2 * MOST))
    (tmp_path / "inside" / "link").symlink_to(outside)
    task, told = await watch(tmp_path / "inside")
    free.append(50 * MOST)
    await asyncio.sleep(0.2)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == []


@pytest.fixture
def hide(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Writes much, below more folders than a path can name."""

    def write() -> None:
        with contextlib.chdir(tmp_path):
            for _ in range(3000):
                Path("d").mkdir()
                os.chdir("d")
            Path("big").write_bytes(os.urandom(2 * MOST))

    yield write
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)  # Python does not get so deep


async def test_what_is_hidden_too_deep_to_be_looked_at_counts(
    tmp_path: Path, free: list[int], hide: Callable[[], None]
) -> None:
    task, told = await watch(tmp_path)
    hide()
    free.append(97 * MOST)
    async with asyncio.timeout(30):
        await task
    assert told == ["exceeded"]


async def test_folders_count_like_files(tmp_path: Path, free: list[int]) -> None:
    task, told = await watch(tmp_path)
    for number in range(MOST // 4096 + 1):
        (tmp_path / str(number)).mkdir()
    free.append(97 * MOST)
    async with asyncio.timeout(30):
        await task
    assert told == ["exceeded"]


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder of an account that has no privilege, which we are while the test lasts."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if os.geteuid() != 0:
            yield folder
            return
        os.chown(folder, 61184, 61184)
        os.seteuid(61184)
        try:
            yield folder
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o444])
async def test_what_is_shut_away_from_who_looks_counts(as_nobody: Path, free: list[int], mode: int) -> None:
    task, told = await watch(as_nobody)
    shut = as_nobody / "shut"
    shut.mkdir()
    (shut / "big").write_bytes(b"")
    shut.chmod(mode)
    free.append(97 * MOST)
    try:
        async with asyncio.timeout(30):
            await task
    finally:
        task.cancel()
        shut.chmod(0o755)
    assert told == ["exceeded"]
