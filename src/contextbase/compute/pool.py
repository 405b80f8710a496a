"""A few worker processes, and a queue from which owners are served in turn.

Processes, because threads share one interpreter lock with the event loop, and cannot be stopped. They are started when
they are first needed, by a fresh interpreter: a fork of the server would take its sockets and locks along.
"""

import asyncio
import json
import logging
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from contextbase.compute.worker import LENGTH_BYTES, framed
from contextbase.errors import TooBusy, Unavailable

__all__ = ["ComputePool"]

_log = logging.getLogger(__name__)

_KEPT_VARIABLES: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from contextbase.compute.worker import main; main()"
)
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    owner: Hashable
    message: bytes
    answer: "asyncio.Future[Any]"


class ComputePool:
    def __init__(
        self,
        *,
        workers: int,
        at_once: int | None = None,
        most_waiting: int = 32,
        most_waiting_in_all: int = 512,
        seconds: float = 60.0,
    ) -> None:
        """`at_once`: how many jobs of one owner run at a time; by default one less than there are workers, so that
        nobody has them all. `seconds`: how long a job may take before its process is killed."""
        self._workers = workers
        self._at_once = max(1, workers - 1) if at_once is None else at_once
        self._most_waiting = most_waiting
        self._most_waiting_in_all = most_waiting_in_all
        self._seconds = seconds
        self._waiting: OrderedDict[Hashable, deque[_Job]] = OrderedDict()  # whose turn is next comes first
        self._running: Counter[Hashable] = Counter()
        self._idle: list[_Worker] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def run(self, owner: Hashable, work: Callable[..., Result], *arguments: Any) -> Result:
        """See `Compute`."""
        if self._is_closed:
            raise _stopping()
        mine = len(self._waiting.get(owner, ()))
        if mine >= self._most_waiting or sum(map(len, self._waiting.values())) >= self._most_waiting_in_all:
            raise TooBusy("Too many comparisons and merges are waiting; try again in a moment.")
        message = pickle.dumps((work, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        job = _Job(owner=owner, message=message, answer=asyncio.get_running_loop().create_future())
        self._waiting.setdefault(owner, deque()).append(job)
        self._serve_next()
        result: Result = await job.answer
        return result

    async def close(self) -> None:
        """Stop all workers. What is still waiting or running fails."""
        self._is_closed = True
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for worker in self._idle:
            await worker.stop()
        self._idle.clear()
        for job in [job for jobs in self._waiting.values() for job in jobs]:
            _fail(job, _stopping())
        self._waiting.clear()

    def _serve_next(self) -> None:
        while len(self._serving) < self._workers and (job := self._next()) is not None:
            self._running[job.owner] += 1
            task = asyncio.create_task(self._serve(job), name="compute")
            self._serving.add(task)
            task.add_done_callback(partial(self._served, job))

    def _next(self) -> _Job | None:
        """The first job of the owner whose turn it is; whoever has enough running waits."""
        for owner, jobs in list(self._waiting.items()):
            while jobs and jobs[0].answer.done():
                jobs.popleft()  # who asked for it has gone away
            if not jobs:
                del self._waiting[owner]
            elif self._running[owner] < self._at_once:
                job = jobs.popleft()
                self._waiting.move_to_end(owner)
                return job
        return None

    async def _serve(self, job: _Job) -> None:
        worker = self._idle.pop() if self._idle else _Worker()
        while worker.has_ended:  # the system killed it since its last job, for want of memory
            worker = self._idle.pop() if self._idle else _Worker()
        try:
            async with asyncio.timeout(self._seconds):
                has_returned, result = pickle.loads(await worker.ask(job.message))  # noqa: S301 - from our own process
        except Exception as error:  # noqa: BLE001 - whatever it is, who asked is told, and the worker is replaced
            _log.warning("a worker failed", extra={"error": type(error).__name__})
            await worker.stop()
            told = f"took over {self._seconds:g} seconds" if isinstance(error, TimeoutError) else "ended unexpectedly"
            _fail(job, Unavailable(f"A comparison or merge {told}; try again, or with smaller texts."))
        except asyncio.CancelledError:
            await worker.stop()
            raise
        else:
            self._idle.append(worker)
            if not has_returned:
                _fail(job, result)
            elif not job.answer.done():
                job.answer.set_result(result)

    def _served(self, job: _Job, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        self._running[job.owner] -= 1
        if not self._running[job.owner]:
            del self._running[job.owner]
        _fail(job, _stopping())  # if nobody has answered it: then it was cancelled
        if not self._is_closed:
            self._serve_next()


class _Worker:
    """One process, started at the first question."""

    def __init__(self) -> None:
        self._process: Process | None = None

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    async def ask(self, message: bytes) -> bytes:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-c", _PROGRAM, json.dumps(sys.path)),
                stdin=PIPE,
                stdout=PIPE,
                env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
                start_new_session=True,  # an interrupt from the keyboard is the server's business
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("A worker process has no pipes.")
        process.stdin.write(framed(message))
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
        return await process.stdout.readexactly(length)

    async def stop(self) -> None:
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


def _stopping() -> Unavailable:
    return Unavailable("The server is stopping; try again in a moment.")


def _fail(job: _Job, error: BaseException) -> None:
    if not job.answer.done():
        job.answer.set_exception(error)
        job.answer.exception()  # who asked may go away before it looks
