"""Who fills the disk is found, and who does not is left alone."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextbase.sandbox import disk
from contextbase.sandbox.native.launcher import disk_use

MOST = 1 << 20


class Room:
    """What the disk is said to have."""

    def __init__(self) -> None:
        self.free = 100 * MOST
        self._looks = 0

    def look(self) -> int:
        self._looks += 1
        return self.free

    async def looked_at(self, times: int) -> None:
        """Until it was looked at that often from now on."""
        wanted = self._looks + times
        while self._looks < wanted:  # noqa: ASYNC110 - counted in a thread
            await asyncio.sleep(0.001)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    """With no time between two looks."""
    room = Room()
    monkeypatch.setattr(disk_use.DiskUse, "_room", lambda _: room.look())
    monkeypatch.setattr(disk, "_PAUSE", 0)
    return room


async def watch(folder: Path, room: Room) -> tuple["asyncio.Task[None]", list[str]]:
    told: list[str] = []
    task = asyncio.create_task(disk.watch_disk(folder, MOST, lambda: told.append("exceeded")))
    await room.looked_at(2)  # the watch has begun, and looked again
    return task, told


async def test_what_is_written_after_the_start_counts(tmp_path: Path, room: Room) -> None:
    task, told = await watch(tmp_path, room)
    (tmp_path / "big").write_bytes(os.urandom(2 * MOST))
    os.sync()
    room.free = 97 * MOST
    await task
    assert told == ["exceeded"]


async def test_what_others_write_does_not_count(tmp_path: Path, room: Room) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "inside").mkdir()
    (outside / "big").write_bytes(os.urandom(2 * MOST))
    (tmp_path / "inside" / "link").symlink_to(outside)
    task, told = await watch(tmp_path / "inside", room)
    room.free = 50 * MOST
    await room.looked_at(3)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == []


async def test_what_is_hidden_too_deep_to_be_looked_at_counts(tmp_path: Path, room: Room) -> None:
    task, told = await watch(tmp_path, room)
    tmp_path.joinpath(*["d"] * (disk_use._DEEPEST + 50)).mkdir(parents=True)
    room.free = 97 * MOST
    await task
    assert told == ["exceeded"]


async def test_folders_count_like_files(tmp_path: Path, room: Room) -> None:
    task, told = await watch(tmp_path, room)
    for number in range(2 * MOST // 4096):
        (tmp_path / str(number)).mkdir()
    room.free = 97 * MOST
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
async def test_what_is_shut_away_from_who_looks_counts(as_nobody: Path, room: Room, mode: int) -> None:
    task, told = await watch(as_nobody, room)
    shut = as_nobody / "shut"
    shut.mkdir()
    (shut / "big").write_bytes(b"")
    shut.chmod(mode)
    room.free = 97 * MOST
    try:
        await task
    finally:
        task.cancel()
        shut.chmod(0o755)
    assert told == ["exceeded"]
