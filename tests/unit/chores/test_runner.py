"""A machine's chores: each goes on by itself, whatever becomes of the others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from contextbase.chores import Chore, ChoreRunner, Where
from contextbase.chores.metrics import ChoreMetrics
from contextbase.chores.repository import ChoreRepository
from contextbase.errors import Unavailable
from contextbase.ids import SystemClock

SOON = timedelta(milliseconds=1)
LONGEST = 60


def chore(name: str, run: Callable[[], Awaitable[object]], **options: Any) -> Chore:
    return Chore(**({"name": name, "every": SOON, "run": run, "where": Where.MACHINE} | options))


def runner_of(*chores: Chore, registry: CollectorRegistry | None = None) -> ChoreRunner:
    return ChoreRunner(
        chores,
        database=cast("Any", None),  # no leader, no database
        repository=ChoreRepository(),
        leadership=None,
        server="here",
        metrics=ChoreMetrics(registry or CollectorRegistry()),
        clock=SystemClock(),
    )


@asynccontextmanager
async def running(runner: ChoreRunner) -> AsyncIterator[None]:
    task = asyncio.create_task(runner.run())
    try:
        async with asyncio.timeout(LONGEST):
            yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Counted:
    """A chore's work that is done well, and says when it was done often enough."""

    def __init__(self, enough: int = 3) -> None:
        self.times = 0
        self.reached = asyncio.Event()
        self._enough = enough

    async def run(self) -> None:
        self.times += 1
        if self.times >= self._enough:
            self.reached.set()


@pytest.mark.parametrize("problem", [Unavailable("The disk is away."), ZeroDivisionError("1/0"), OSError("no")])
async def test_a_chore_that_fails_leaves_the_others_alone_and_is_tried_again(problem: Exception) -> None:
    good, tries = Counted(), Counted()

    async def bad() -> None:
        await tries.run()
        raise problem

    runner = runner_of(chore("bad", bad), chore("good", good.run))
    async with running(runner):
        await good.reached.wait()
        await tries.reached.wait()
    runs = {run.name: run for run in runner.machine_runs}
    assert runs["good"].error is None
    assert runs["bad"].failures >= 2
    assert runs["bad"].error


async def test_a_chore_that_hangs_leaves_the_others_alone_and_is_cut_off() -> None:
    good, tries = Counted(), Counted(2)

    async def hangs() -> None:
        await tries.run()
        await asyncio.Event().wait()

    runner = runner_of(chore("hangs", hangs, at_most=timedelta(milliseconds=20)), chore("good", good.run))
    async with running(runner):
        await good.reached.wait()
        await tries.reached.wait()
    [run] = [run for run in runner.machine_runs if run.name == "hangs"]
    assert "longer than" in (run.error or "")


async def test_what_nobody_foresaw_is_shown_without_its_words() -> None:
    tries = Counted(2)

    async def bad() -> None:
        await tries.run()
        raise ValueError("postgresql://me:hunter2@db")

    runner = runner_of(chore("bad", bad))
    async with running(runner):
        await tries.reached.wait()
    assert runner.machine_runs[0].error == "ValueError; the log has more."


async def test_a_chore_that_recovers_starts_to_count_its_failures_again() -> None:
    tries = Counted(4)

    async def bad_at_first() -> None:
        await tries.run()
        if tries.times < 3:
            raise Unavailable("Not yet.")

    registry = CollectorRegistry()
    runner = runner_of(chore("bad-at-first", bad_at_first), registry=registry)
    async with running(runner):
        await tries.reached.wait()
    assert (runner.machine_runs[0].failures, runner.machine_runs[0].error) == (0, None)
    assert registry.get_sample_value("contextbase_chore_runs_total", {"chore": "bad-at-first", "result": "failed"}) == 2


async def test_without_a_leadership_the_leaders_chores_are_left_to_others() -> None:
    of_leader, of_machine = Counted(), Counted()
    async with running(runner_of(chore("a", of_leader.run, where=Where.LEADER), chore("b", of_machine.run))):
        await of_machine.reached.wait()
    assert of_leader.times == 0


def test_no_two_chores_have_one_name() -> None:
    counted = Counted.__new__(Counted)
    with pytest.raises(ValueError, match="one name"):
        runner_of(chore("a", counted.run), chore("a", counted.run))
