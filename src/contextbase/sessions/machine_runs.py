"""The runs that this machine works on: claimed from the queue, kept by beats, adopted again after a restart."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from contextbase.errors import ContextbaseError
from contextbase.machines.placement import was_sent_here
from contextbase.sessions.model import ClaimedRun, RunId, SessionId
from contextbase.sessions.run_work import RunParts, RunWork
from contextbase.streams.model import SYSTEM
from contextbase.streams.notifier import Notifier

__all__ = ["MachineRuns"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0  # without a hint
_STRETCH_SECONDS: Final = 1800.0  # of looking, in one run of the chore
_AT_ONCE: Final = 10
_PATIENCE_SECONDS: Final = 5.0  # for work to stop when this process does


class MachineRuns:
    """`claim` and `beat` are chores of the machine. What they started goes on between them, and stops with `close`; the
    executors go on by themselves, and the next process finds them."""

    def __init__(self, *, parts: RunParts, notifier: Notifier) -> None:
        self._parts = parts
        self._notifier = notifier
        self._machine = parts.host.machine
        self._work: dict[RunId, tuple[RunWork, asyncio.Task[None], int]] = {}
        self._is_adopted = False
        self._wake = asyncio.Event()

    @property
    def at_work(self) -> int:
        return len(self._work)

    def works_on(self, session_id: SessionId) -> bool:
        return any(work.session_id == session_id for work, _, _ in self._work.values())

    async def claim(self) -> None:
        """Look for runs for a while, at once when somebody hints that there are new ones."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _STRETCH_SECONDS
        with self._notifier.subscribed(SYSTEM, self._wake.set):
            while loop.time() < until:
                self._wake.clear()
                if await self._claimed() < _AT_ONCE:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_SECONDS):
                            await self._wake.wait()

    async def _claimed(self) -> int:
        try:
            await self._adopt()
            claims = await self._parts.queue.claim(self._machine, limit=_AT_ONCE)
            if self._work and not claims:  # the hint may be about a run that is to end
                await self.beat()
        except ContextbaseError as error:
            _log.warning("no run can be claimed now; trying again", extra={"error": error.message})
            self._is_adopted = False  # the answer may have been lost on its way, and runs be claimed all the same
            return 0
        except BaseException:
            self._is_adopted = False
            raise
        for claimed in claims:
            self._start(claimed)
        return len(claims)

    async def _adopt(self) -> None:
        """Go on with what is ours and nobody works on: of an earlier process, or of the time when the database was
        away."""
        if not self._is_adopted:
            self._is_adopted = True  # what ends meanwhile may ask for it again
            held = {run_id: attempt for run_id, (_, _, attempt) in self._work.items()}
            for claimed in await self._parts.queue.claimed_by(self._machine):
                if held.get(claimed.run.id) != claimed.run.attempt:  # that one is at work, or has ended just now
                    self._start(claimed)

    async def beat(self) -> None:
        """Keep the leases, and hear who wants a run to end. A run that is not ours any more is let go."""
        held = {run_id: attempt for run_id, (_, _, attempt) in self._work.items()}
        answers = await self._parts.queue.beat(self._machine, held)
        for run_id in held:
            found = self._work.get(run_id)
            if found is None:
                continue
            work, task, _ = found
            if run_id not in answers:
                task.cancel()
            elif answers[run_id]:
                work.cancel()
        at_work = {work.session_id: work for work, _, _ in self._work.values()}
        for session_id, messages in (await self._parts.queue.steering(at_work.keys())).items():
            at_work[session_id].steer(messages)

    async def close(self) -> None:
        tasks = [task for _, task, _ in self._work.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE_SECONDS)

    def _start(self, claimed: ClaimedRun) -> None:
        if (held := self._work.get(claimed.run.id)) is not None:
            work, task, attempt = held
            if attempt != claimed.run.attempt:  # its lease was over, and it came back to us: adopted when this one ends
                self._work[claimed.run.id] = (work, task, claimed.run.attempt)
                task.cancel()
            return
        work = RunWork(self._parts, claimed)
        if claimed.run.is_canceled:
            work.cancel()
        task = asyncio.create_task(self._done(work, claimed), name=f"run-{claimed.run.id}")
        self._work[claimed.run.id] = (work, task, claimed.run.attempt)

    async def _done(self, work: RunWork, claimed: ClaimedRun) -> None:
        was_sent_here.set(True)  # in this task: the claim has chosen the machine, and its session's folder is made here
        try:
            await work.run()
        except ContextbaseError as error:  # the database is away, say: it goes on when that is back
            _log.warning("the end of an attempt could not be written", extra={"error": error.message})
            self._is_adopted = False
        finally:
            _, _, attempt = self._work.pop(claimed.run.id)
            if attempt != claimed.run.attempt:
                self._is_adopted = False
            self._wake.set()
