"""One turn at a time: started once per run and attempt, held to its limits, and ended with all its processes."""

import asyncio
import contextlib
import logging
import time
from dataclasses import replace
from typing import Any, Final

from contextbase.agents.model import AgentPlace, AgentTurn, Capability, SteerMessage, TurnEnd, TurnFailure, TurnOutcome
from contextbase.agents.options import profile_of
from contextbase.agents.package import is_older
from contextbase.agents.ports import AgentAdapter
from contextbase.agents.registry import adapter_named, adapters
from contextbase.agents.slash_commands import expanded_prompt
from contextbase.agents.turns import RESUME_FAILED, named
from contextbase.executor.event_writer import EventWriter, OutputLimitReached
from contextbase.executor.journal import EventJournal
from contextbase.executor.processes import MARK, RunProcesses
from contextbase.executor.questions import Questions

__all__ = ["RunInProgress", "RunSupervisor"]

_log = logging.getLogger(__name__)

_GRACE: Final = 20.0  # seconds an agent has to stop by itself
_ENDS_CLEANLY: Final = frozenset({"user", "parked"})  # parked: a person takes long to answer
_LIMITS: Final = {
    "time_limit": "The run took longer than it may.",
    "disk_limit": "The run wrote more to the disk than it may.",
    "output_limit": "The run said more than it may.",
    "question_expired": "Nobody answered the agent's question in time.",
}


class RunInProgress(Exception):
    """Another run is in the sandbox."""


class RunSupervisor:
    def __init__(self, *, journal: EventJournal, place: AgentPlace, processes: RunProcesses) -> None:
        self.questions = Questions()
        self._journal = journal
        self._place = place
        self._processes = processes
        self._turn: AgentTurn | None = None
        self._writer: EventWriter | None = None  # of the turn
        self._task: asyncio.Task[None] | None = None
        self._canceled = asyncio.Event()
        self._reason: str | None = None
        self._ended: dict[str, str] = {}  # outcomes by run and attempt
        self._before: dict[str, int] = {}  # the journal's last number when they began, likewise
        self._recover()

    @property
    def current(self) -> AgentTurn | None:
        return self._turn

    def start(self, turn: AgentTurn) -> bool:
        """False: this attempt was started before. `RunInProgress` while another one works."""
        if turn.key in self._ended or (self._turn is not None and self._turn.key == turn.key):
            return False
        if self._turn is not None:
            raise RunInProgress
        self._turn = turn
        self._before[turn.key] = self._journal.last
        self._canceled = asyncio.Event()
        self._reason = None
        self._task = asyncio.create_task(self._run(turn))
        return True

    def cancel(self, run_id: str | None, reason: str) -> bool:
        """False: it does not run. Harmless when it was asked for before."""
        if self._turn is None or (run_id is not None and self._turn.run_id != run_id):
            return False
        self._reason = self._reason or reason
        self._canceled.set()
        return True

    def steer(self, run_id: str, message: SteerMessage) -> bool:
        """False: the run does not work, or its agent takes no messages in the middle of a turn."""
        adapter = None if self._turn is None else adapter_named(self._turn.provider)
        if self._writer is None or self._turn is None or self._turn.run_id != run_id or adapter is None:
            return False
        if Capability.STEER not in adapter.capabilities:
            return False
        self._writer.steer(message)
        return True

    @property
    def steering(self) -> int:
        """How many messages wait for the working turn to take them."""
        return 0 if self._writer is None else self._writer.steering.qsize()

    @property
    def kept_process(self) -> int | None:
        """The agent's program that waits for the next turn."""
        return self._place.programs.process_id

    def outcome(self, key: str) -> str | None:
        return self._ended.get(key)

    def began_after(self, key: str) -> int:
        """All events of this attempt come after this number; 0 if an earlier executor began it."""
        return self._before.get(key, 0)

    def attempts(self, run_id: str) -> dict[int, str]:
        """Of one run: how each attempt ended, or "running"."""
        keys = (key.rpartition(":") for key in self._ended)
        found = {int(number): self._ended[f"{known}:{number}"] for known, _, number in keys if known == run_id}
        if self._turn is not None and self._turn.run_id == run_id:
            found[self._turn.attempt] = "running"
        return found

    def todos(self, run_id: str) -> list[dict[str, Any]]:
        """As the journal has them now."""
        found: list[dict[str, Any]] = []
        for event in self._journal.events():
            if event["run_id"] == run_id and event["type"] == "todo.snapshot":
                found = event["data"]["todos"]
        return found

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._processes.end_all()

    async def _run(self, turn: AgentTurn) -> None:
        writer = self._writer = EventWriter(self._journal, turn, self.questions)
        began = time.monotonic()
        end = TurnEnd(outcome=TurnOutcome.FAILED, sdk_session_id=turn.resume)
        try:
            writer.last_words("run.status", {"state": "running", "provider": turn.provider})
            end = await self._finished(turn, writer)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run ends with it, and says so
            _log.exception("a run failed")
            failure = TurnFailure(code="executor_error", message=f"{type(error).__name__}: {error}"[:2000])
            end = replace(end, failure=failure)
        finally:
            await asyncio.shield(self._end_processes(end))
            if end.failure is not None:
                failure = end.failure
                error_data = {"code": failure.code, "message": failure.message, "retryable": failure.is_retryable}
                writer.last_words("run.error", error_data)
            self._ended[turn.key] = end.outcome
            self._turn = self._writer = None
            data = {
                "outcome": end.outcome,
                "sdk_session_id": end.sdk_session_id,
                "duration_ms": round((time.monotonic() - began) * 1000),
            }
            writer.last_words("run.finished", data)
            with contextlib.suppress(OSError):
                self._journal.flush()

    async def _end_processes(self, end: TurnEnd) -> None:
        """All that the turn started, but for a program that waits for the next one and has left nothing running."""
        kept = self.kept_process
        if kept is not None and (end.outcome is not TurnOutcome.COMPLETED or self._processes.has_children(kept)):
            await self._place.programs.end()
        await self._processes.end_all(spared=self.kept_process)

    async def _finished(self, turn: AgentTurn, writer: EventWriter) -> TurnEnd:
        adapter = adapter_named(turn.provider)
        if adapter is None:
            names = ", ".join(each.name for each in adapters())
            failure = TurnFailure(code="agent_missing", message=f"There is no agent {turn.provider!r} but {names}.")
            return TurnEnd(outcome=TurnOutcome.FAILED, failure=failure)
        place = replace(self._place, environment={**self._place.environment, MARK: turn.key})
        working = asyncio.create_task(self._resumed(adapter, turn, place, writer))
        stopping = asyncio.create_task(self._canceled.wait())
        try:
            done, _ = await asyncio.wait(
                (working, stopping), timeout=turn.max_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                self.cancel(turn.run_id, "time_limit")
            if not working.done():
                await asyncio.wait((working,), timeout=_GRACE)
            end = TurnEnd(outcome=TurnOutcome.CANCELED, sdk_session_id=turn.resume)
            if working.done():
                end = working.result()
        except OutputLimitReached:
            self._reason = "output_limit"
            end = TurnEnd(outcome=TurnOutcome.FAILED, sdk_session_id=turn.resume)
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)
        return self._judged(end)

    async def _resumed(self, adapter: AgentAdapter, turn: AgentTurn, place: AgentPlace, writer: EventWriter) -> TurnEnd:
        """A turn of a program that goes on with what it knows. If it cannot read that, it is told what was said; state
        of a newer program is left alone."""
        prompt = await asyncio.to_thread(expanded_prompt, turn.prompt, place.workspace, turn.commands)
        turn = replace(turn, prompt=prompt, profile=profile_of(adapter.options, turn.options, turn.profile))
        if turn.resume and turn.state_version:
            version = await asyncio.to_thread(adapter.version, self._place)  # not that of the turn: asked once
            if version is not None and is_older(version, turn.state_version):
                message = (
                    f"The session's state was written by version {turn.state_version} of {adapter.name}, and {version} "
                    "is installed here. Install at least that version, or choose another agent for the next message."
                )
                failure = TurnFailure(code="agent_outdated", message=message)
                return TurnEnd(outcome=TurnOutcome.FAILED, sdk_session_id=turn.resume, failure=failure)
        end = named(await adapter.run(turn, place, writer, self._canceled))
        if end.failure is None or end.failure.code != RESUME_FAILED or not turn.resume or self._canceled.is_set():
            return end
        await writer.emit("conversation.rebuilt", {"reason": RESUME_FAILED})
        return named(await adapter.run(replace(turn, resume=None), place, writer, self._canceled))

    def _judged(self, end: TurnEnd) -> TurnEnd:
        """A turn that a limit stopped failed, whatever the agent made of it."""
        if self._reason is None or self._reason in _ENDS_CLEANLY:
            return end
        message = _LIMITS.get(self._reason, f"The run was stopped: {self._reason}.")
        failure = TurnFailure(code=self._reason, message=message)
        return replace(end, outcome=TurnOutcome.FAILED, failure=failure)

    def _recover(self) -> None:
        """Runs that an earlier executor did not end are over."""
        open_runs: dict[str, AgentTurn] = {}
        for event in self._journal.events():
            turn = AgentTurn(run_id=event["run_id"], attempt=event["attempt"], provider="", prompt="", model="")
            if event["type"] == "run.finished":
                self._ended[turn.key] = event["data"]["outcome"]
                open_runs.pop(turn.key, None)
            else:
                before = open_runs.get(turn.key, turn)
                open_runs[turn.key] = replace(before, resume=event["data"].get("sdk_session_id") or before.resume)
        self._processes.end_leftovers()  # also a program that waited for the next turn
        for turn in open_runs.values():
            writer = EventWriter(self._journal, turn, self.questions)
            message = "The executor was ended in the middle of the run."
            writer.last_words("run.error", {"code": "executor_died", "message": message, "retryable": True})
            end = {"outcome": TurnOutcome.FAILED, "sdk_session_id": turn.resume, "duration_ms": 0}
            writer.last_words("run.finished", end)
            self._ended[turn.key] = TurnOutcome.FAILED
