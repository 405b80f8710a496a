"""Worker processes: what they compute, whose turn it is, and what becomes of those that die."""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from contextbase.compare import LineBlame, Side, compare
from contextbase.compare.engine import Compared, compare_all
from contextbase.compare.model import CompareLimits
from contextbase.compare.walk import Step, Walked, walk
from contextbase.compute.pool import ComputePool
from contextbase.errors import InvalidInput, TooBusy, Unavailable
from contextbase.ids import TreePath
from contextbase.merge import MergePolicy, merge


@pytest.fixture
async def pool() -> AsyncIterator[ComputePool]:
    pool = ComputePool(workers=2, at_once=1)
    yield pool
    await pool.close()


async def test_merges_diffs_and_blames_come_out_as_in_this_process(pool: ComputePool) -> None:
    base = b"".join(b"%d\n" % number for number in range(20_000))
    ours, theirs = b"first\n" + base, base + b"last\n"
    work = partial(merge, path="a.txt", policy=MergePolicy())
    assert await pool.run("a", work, base, ours, theirs) == work(base, ours, theirs)
    assert await pool.run("a", work, base, base[:-20], theirs) == work(base, base[:-20], theirs)
    file = Compared(Side.of(b'{"a": [1, 2]}'), Side.of(b'{"a": [2, 3]}'), "a.json", None, CompareLimits())
    [diff] = await pool.run("a", compare_all, [file])
    assert diff == compare(file.old, file.new, path="a.json")
    walked = await pool.run("a", walk, Walked(start=LineBlame.start), [_step(1, ours), _step(2, theirs)])
    assert walked.blame == LineBlame.start(ours, 1).then(theirs, 2)


async def test_what_the_work_raises_is_raised_and_the_worker_goes_on(pool: ComputePool) -> None:
    pid = await pool.run("a", os.getpid)
    with pytest.raises(InvalidInput):
        await pool.run("a", TreePath, "/no/such/path")
    assert await pool.run("a", os.getpid) == pid != os.getpid()


async def test_a_worker_knows_nothing_of_the_server_s_environment(
    pool: ComputePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTBASE_AUDIT_KEY", "hunter2")
    assert await pool.run("a", os.getenv, "CONTEXTBASE_AUDIT_KEY") is None


async def test_work_that_takes_its_process_down_fails_alone(pool: ComputePool) -> None:
    with pytest.raises(Unavailable):
        await pool.run("a", os._exit, 3)
    assert await pool.run("a", abs, -1) == 1


async def test_a_worker_that_was_killed_while_it_had_nothing_to_do_is_replaced(pool: ComputePool) -> None:
    pid = await pool.run("a", os.getpid)
    [idle] = pool._idle
    os.kill(pid, signal.SIGKILL)
    for _ in range(6000):
        if idle.has_ended:
            break
        await asyncio.sleep(0.01)
    assert await pool.run("a", os.getpid) not in (pid, os.getpid())


async def test_work_that_takes_too_long_is_killed() -> None:
    pool = ComputePool(workers=1, seconds=5)
    try:
        pid = await pool.run("a", os.getpid)
        with pytest.raises(Unavailable):
            await pool.run("a", time.sleep, 3600)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert await pool.run("a", abs, -1) == 1
    finally:
        await pool.close()


async def test_owners_take_turns_however_much_one_of_them_asks_for() -> None:
    """One worker, which is kept busy until everybody waits; then all of them get their turn before anybody's second."""
    pool, order = ComputePool(workers=1), []

    async def ask(owner: str) -> None:
        await pool.run(owner, abs, -1)
        order.append(owner)

    try:
        first = asyncio.create_task(pool.run("greedy", time.sleep, 0.5))
        await asyncio.sleep(0)
        await asyncio.gather(first, *(ask("greedy") for _ in range(10)), ask("modest"), ask("shy"))
    finally:
        await pool.close()
    assert {*order[:3]} == {"greedy", "modest", "shy"}


async def test_one_owner_never_has_all_workers(pool: ComputePool, tmp_path: Path) -> None:
    """Two jobs of one owner wait for a file, which only the job of another makes."""
    mark = tmp_path / "made"
    waiting = [asyncio.create_task(pool.run("greedy", wait_for, str(mark))) for _ in range(2)]
    await pool.run("modest", Path.touch, mark)
    assert await asyncio.gather(*waiting) == [True, True]


async def test_who_asks_for_too_much_at_once_is_told_to_come_back() -> None:
    pool = ComputePool(workers=1, most_waiting=2)
    try:
        waiting = [asyncio.create_task(pool.run("a", abs, -1)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooBusy):
            await pool.run("a", abs, -1)
        assert await pool.run("b", abs, -1) == 1
        assert await asyncio.gather(*waiting) == [1, 1, 1]
    finally:
        await pool.close()


async def test_nobody_s_work_is_left_when_the_pool_closes() -> None:
    pool = ComputePool(workers=1)
    pid = await pool.run("a", os.getpid)
    running, waiting = (asyncio.create_task(pool.run("a", time.sleep, 3600)) for _ in range(2))
    await asyncio.sleep(0)
    await pool.close()
    for task in (running, waiting):
        with pytest.raises(Unavailable):
            await task
    with pytest.raises(Unavailable):
        await pool.run("a", abs, -1)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_who_goes_away_leaves_the_worker_to_others(pool: ComputePool) -> None:
    gone = [asyncio.create_task(pool.run("a", abs, -1)) for _ in range(5)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    assert await pool.run("a", abs, -2) == 2


def _step(number: int, content: bytes) -> Step:
    return Step(number, content, None, is_last_of_fork=False, has_forks=False)


def wait_for(path: str) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if Path(path).exists():
            return True
        time.sleep(0.01 + random.random() / 100)
    return False
