import asyncio
import threading

import pytest

from contextbase.threads import in_thread


async def test_a_cancelled_caller_still_waits_for_its_thread_to_end() -> None:
    started, may_end = threading.Event(), threading.Event()
    ended = False

    def work() -> None:
        nonlocal ended
        started.set()
        may_end.wait(10)
        ended = True

    caller = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    for _ in range(3):  # however often it is cancelled
        caller.cancel()
        await asyncio.sleep(0.01)
    assert not caller.done()
    may_end.set()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended


async def test_the_failure_of_a_thread_reaches_its_caller_unless_that_was_cancelled() -> None:
    started, may_end = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        may_end.wait(10)
        raise ValueError("from the thread")

    cancelled = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    cancelled.cancel()
    await asyncio.sleep(0)
    may_end.set()

    with pytest.raises(asyncio.CancelledError):
        await cancelled
    with pytest.raises(ValueError, match="from the thread"):
        await in_thread(work)
