"""Leases between real processes: kill -9, expiry, contention, other machines, and a folder that was damaged."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from contextbase.errors import LeaseHeld, MachineProblem
from contextbase.leases import FolderLeases, LeaseEvent, LeaseEventKind
from contextbase.leases.processes import this_process
from contextbase.leases.table import LeaseTable

_REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "leases"


async def test_the_lease_of_a_killed_holder_goes_to_the_next(folder: Path) -> None:
    events: list[LeaseEvent] = []
    async with FolderLeases(folder, on_event=events.append) as leases:
        with _holder(folder, "a", "victim", "300") as holder:
            with pytest.raises(LeaseHeld):
                await leases.acquire("a", owner="two", timeout=0)
            holder.send_signal(signal.SIGKILL)
            # Not even reaped: what is left of the process does not count as alive.
            assert (await leases.acquire("a", owner="two", timeout=60)).owner == "two"
    removed = [event.owner for event in events if event.kind is LeaseEventKind.CLEANUP]
    assert removed == ["victim"]


async def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it(folder: Path) -> None:
    earlier = replace(this_process(), started=this_process().started - 1)
    await FolderLeases(folder, process=earlier).acquire("a", owner="dead")
    async with FolderLeases(folder) as leases:
        assert not await leases.is_locked("a")
        await leases.acquire("a", owner="two", timeout=0)


async def test_no_lease_outlives_a_restart_of_the_machine(folder: Path) -> None:
    before = replace(this_process(), boot="another boot")
    dead = await FolderLeases(folder, process=before).acquire("a", owner="one")
    async with FolderLeases(folder) as leases:
        assert (await leases.acquire("a", owner="two", timeout=0)).token > dead.token


async def test_of_another_machine_only_the_heartbeat_tells(folder: Path) -> None:
    async with FolderLeases(folder) as leases:
        with _holder(folder, "a", "far", "3", "another machine") as holder:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            with pytest.raises(LeaseHeld):
                await leases.acquire("a", owner="near", timeout=0)  # its process is gone, but that cannot be seen here
            assert (await leases.acquire("a", owner="near")).owner == "near"  # when its three seconds are over


async def test_two_machines_keep_each_other_out(folder: Path) -> None:
    here = FolderLeases(folder, process=replace(this_process(), node="here"))
    there = FolderLeases(folder, process=replace(this_process(), node="there", process_id=1, boot="its own"))
    async with here, there:
        lease = await here.acquire("src/**", owner="one")
        with pytest.raises(LeaseHeld):
            await there.acquire("src/a", owner="two", timeout=0)
        await here.release(lease)
        later = await there.acquire("src/a", owner="two", timeout=0)
        assert later.token > lease.token
        with pytest.raises(LeaseHeld):
            await here.acquire("src/**", owner="one", timeout=0)


async def test_the_heartbeat_goes_on_by_itself(folder: Path) -> None:
    async with FolderLeases(folder) as leases:
        with _holder(folder, "a", "one", "3"):
            (first,) = await leases.active()
            for _ in range(1000):
                (now,) = await leases.active()
                if now.expires_at > first.expires_at:
                    break
                await asyncio.sleep(0.01)
            assert now.expires_at > first.expires_at
            assert now.token == first.token


def test_processes_that_contend_for_a_file_lose_none_of_each_others_lines(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "shared.txt"
    file.touch()
    workers = [_worker("append", folder, file, f"worker-{number}", 10) for number in range(5)]
    for worker in workers:
        assert worker.communicate(timeout=120)[0] == b"done\n"
    lines = [line.split() for line in file.read_text().splitlines()]
    assert sorted(owner for owner, _ in lines) == sorted(f"worker-{number}" for number in range(5) for _ in range(10))
    tokens = [int(token) for _, token in lines]
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"leases": [{}], "last_token": 1}', b"\xff"])
async def test_an_empty_or_broken_book_blocks_nobody_and_repeats_no_token(folder: Path, damage: bytes) -> None:
    async with FolderLeases(folder) as leases:
        before = await leases.acquire("a", owner="one")
        (folder / "leases.json").write_bytes(damage)
        after = await leases.acquire("a", owner="two", timeout=0)
        assert after.token > before.token


async def test_who_is_cancelled_just_as_it_gets_the_lease_leaves_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FolderLeases(folder) as leases, FolderLeases(folder) as other:
        acquired, cancelled = threading.Event(), threading.Event()
        change = leases._change

        def slowly(work: Callable[[LeaseTable, datetime], object]) -> object:
            done = change(work)
            acquired.set()
            cancelled.wait(60)
            return done

        monkeypatch.setattr(leases, "_change", slowly)
        acquiring = asyncio.create_task(leases.acquire("a", owner="one"))
        await asyncio.to_thread(acquired.wait, 60)
        assert await other.is_locked("a")
        acquiring.cancel()
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await acquiring
        assert not await other.is_locked("a")


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineProblem, match="file"):
        FolderLeases(tmp_path / "file" / "leases")


async def test_a_heartbeat_that_fails_is_tried_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with FolderLeases(folder, ttl=timedelta(seconds=0.6)) as leases:
        await leases.acquire("a", owner="one")
        (folder / "leases.json.draft").mkdir()
        for _ in range(12_000):
            if "could not be renewed" in caplog.text:
                break
            await asyncio.sleep(0.01)
        assert "could not be renewed" in caplog.text
        (folder / "leases.json.draft").rmdir()


@contextmanager
def _holder(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the lease."""
    holder = _worker("hold", folder, *arguments)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().startswith(b"held ")
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def _worker(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.lease_worker", *map(str, arguments)]
    return subprocess.Popen(command, cwd=_REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
