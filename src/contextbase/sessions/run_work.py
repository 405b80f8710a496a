"""One attempt of a run on this machine, from its claim to its end.

claimed -> restoring (the folder) -> linking (sandbox, executor, the agent's own data) -> preparing -> running ->
syncing (what it did lands, and is stored) -> exported -> succeeded. After a restart of this process it goes on where it
was: the executor has outlived us, and its journal tells what we missed.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from contextbase.agents.model import Capability
from contextbase.agents.registry import adapter_named, default_model
from contextbase.commands.occupancy import Occupancy
from contextbase.conversation.model import CONVERSATION_REBUILT
from contextbase.conversation.questions import REQUESTED
from contextbase.errors import Conflict, ContextbaseError, LeaseLost, SetupFailed, Unavailable
from contextbase.models.model import ModelContext
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.app_settings import AppRunSettings, RunSettings
from contextbase.sessions.attachments import RunAttachments
from contextbase.sessions.disk_guard import guard_disk
from contextbase.sessions.earlier_turns import EarlierTurns
from contextbase.sessions.event_batches import gathered
from contextbase.sessions.landing import LandingReport, RunLanding
from contextbase.sessions.live_worker import LiveWorker, SessionFolder
from contextbase.sessions.model import ClaimedRun, RunFacts, RunId, SessionId
from contextbase.sessions.periodic_snapshots import snapshot_every
from contextbase.sessions.queue import RunQueue
from contextbase.sessions.run_end import RunEnd, told_text
from contextbase.sessions.run_log import RunLog
from contextbase.sessions.run_questions import QuestionWatch, RunQuestions
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.states import RunState
from contextbase.sessions.steering import SteeringDelivery
from contextbase.sessions.turn_notes import CUT_OFF, MISSED, turn_notes
from contextbase.sessions.ways_out import RunsAtWork
from contextbase.sessions.worker_host import WorkerHost

__all__ = ["RunLimits", "RunParts", "RunWork"]

_log = logging.getLogger(__name__)

_GOES_ON: Final = frozenset({"running", "completed", "canceled"})
_AT_WORK: Final = frozenset({RunState.RUNNING, RunState.WAITING_HUMAN})
_DIED: Final = "executor_died"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    seconds: float = 6 * 3600.0
    output_bytes: int = 256 << 20
    keep_seconds: float = 300.0  # that the agent's program waits for the next run of its session


@dataclass(frozen=True, kw_only=True, slots=True)
class RunParts:
    """What the work on a run needs."""

    runs: AgentRuns
    queue: RunQueue
    log: RunLog
    earlier: EarlierTurns
    attachments: RunAttachments
    host: WorkerHost
    landing: RunLanding
    occupancy: Occupancy
    at_work: RunsAtWork
    questions: RunQuestions
    settings: AppRunSettings
    limits: RunLimits = field(default_factory=RunLimits)
    snapshots: timedelta = timedelta(minutes=5)  # from one to the next while the agent works
    main_model: str  # for sessions that name none
    small_model: str


class RunWork:
    """`cancel` may be called at any moment. When the task that runs it is cancelled, the attempt is left as it is: the
    next process of this machine goes on with it."""

    def __init__(self, parts: RunParts, claimed: ClaimedRun) -> None:
        self._parts = parts
        self._session = claimed.session
        self._run = claimed.run
        self._said = RunSettings()
        self._canceled = asyncio.Event()
        self._steering = SteeringDelivery(parts.runs, claimed.run.id)
        self._after: int | None = None  # the executor's events of this attempt come after this number
        self._told = claimed.run.attempt  # the attempt by which the executor knows what it does for us
        self._may_be_known = claimed.run.attempt > 1 or claimed.run.state is not RunState.CLAIMED  # to the executor

    @property
    def session_id(self) -> SessionId:
        return self._session.id

    def cancel(self) -> None:
        """Somebody wants the run to end."""
        self._canceled.set()

    def steer(self, messages: Sequence[RunId]) -> None:
        """These messages are for the working turn; told again, they are given to it once."""
        self._steering.add(messages)

    async def run(self) -> None:
        extra = {"run_id": str(self._run.id), "attempt": self._run.attempt}
        try:
            await self._work()
        except LeaseLost:
            _log.warning("a run was given to somebody else while this machine worked on it", extra=extra)
            await self._stop_agent()
        except SetupFailed as error:  # it would fail again
            await self._parts.queue.fail(self._run.id, self._run.attempt, reason=error.code, message=error.message)
        except ContextbaseError as error:
            _log.warning("an attempt of a run failed", extra={**extra, "error": error.message, "code": error.code})
            await self._give_back(error.code, error.message)
        except Exception:  # noqa: BLE001 - a fault of ours: the run is tried again, and its owner is told
            _log.exception("an attempt of a run failed", extra=extra)
            await self._give_back("internal_error", "Something went wrong on the machine that worked on the run.")

    async def _work(self) -> None:
        if self._run.state in (RunState.SYNCING, RunState.EXPORTED):  # the process died while it stored what was done
            await self._finish(RunEnd.stored(self._run))
            return
        self._said = await self._parts.settings.of_run(self._session)
        # From here on: an agent that outlived us asks its model at once.
        with self._parts.at_work.working(self._context(), self._said.remote_servers):
            folder = await self._folder()
            worker = await self._worker()
            with self._parts.occupancy.busy(worker.sandbox_id):
                end = await self._turned(worker, folder)
        await self._finish(end)

    async def _turned(self, worker: LiveWorker, folder: SessionFolder) -> RunEnd:
        if self._run.state is RunState.WAITING_HUMAN and await self._known_attempt(worker) is None:
            return RunEnd(outcome="canceled")  # the process that asked is gone: the answer begins another one
        await self._start(worker, folder)
        return await self._followed(worker)

    @property
    def _main_model(self) -> str:
        return self._run.model or default_model(self._run.provider) or self._parts.main_model

    def _context(self) -> ModelContext:
        """On whose account the agent's model requests go."""
        return ModelContext(
            session_id=self._session.id,
            run_id=self._run.id,
            attempt=self._run.attempt,
            owner=self._session.owner,
            project_id=self._session.project_id,
            main_model=self._main_model,
            small_model=self._parts.small_model,
            run_budget=self._said.run_budget,
            on_wait=self._tell_wait,
        )

    async def _tell_wait(self, seconds: float) -> None:
        """The model service is busy: its people see why nothing happens."""
        run, data = self._run, {"retry_after": seconds}
        await self._parts.runs.tell(run.session_id, run.id, run.attempt, "rate_limited", data)

    async def _folder(self) -> SessionFolder:
        await self._move_on(RunState.CLAIMED, RunState.RESTORING)
        return await self._parts.host.folder(self._session)

    async def _worker(self) -> LiveWorker:
        if self._run.state is RunState.RESTORING and self._parts.host.is_open(self._session.id):
            run, through = self._run, (RunState.LINKING,)
            self._run = await self._parts.runs.move(run.id, run.attempt, run.state, RunState.PREPARING, through=through)
        await self._move_on(RunState.RESTORING, RunState.LINKING)
        return await self._parts.host.opened(self._session)

    async def _start(self, worker: LiveWorker, folder: SessionFolder) -> None:
        """Tell the executor to run it, unless it did so for an earlier attempt that this machine lost sight of."""
        await self._move_on(RunState.LINKING, RunState.PREPARING)
        if self._canceled.is_set():
            return
        earlier = await self._known_attempt(worker) if self._may_be_known else None
        if earlier is not None:
            self._told = earlier
        else:
            await self._begin(worker, folder)
        await self._move_on(
            RunState.PREPARING,
            RunState.RUNNING,
            RunFacts(
                runtime_version=folder.runtime_version or told_text(worker.link.about, "executor"),
                image=self._parts.host.image,
            ),
        )

    async def _known_attempt(self, worker: LiveWorker) -> int | None:
        """The newest one that the executor works on, or has brought to an end that is not its own fault."""
        known = (await worker.link.call("GET", f"/runs/{self._run.id}")).checked().get("attempts")
        if not isinstance(known, dict):
            return None
        # What was asked in a turn that has ended since is answered in a new one.
        goes_on = {"running"} if await self._parts.questions.waits(self._run) else _GOES_ON
        alive = [int(number) for number, outcome in known.items() if number.isdecimal() and outcome in goes_on]
        return max(alive, default=None)

    async def _begin(self, worker: LiveWorker, folder: SessionFolder) -> None:
        said = self._said
        _check_servers(self._run.provider, said)
        told, answers, landed = await asyncio.gather(
            self._parts.earlier.before(self._session, self._run),
            self._parts.questions.for_turn(self._run),
            self._parts.runs.landed_before(self._run),
        )
        prompts = [] if answers.new and told.resume is not None else [self._run.prompt]
        body = {
            "run_id": str(self._run.id),
            "attempt": self._run.attempt,
            "provider": self._run.provider,
            "prompt": "\n\n".join([*prompts, *([answers.quoted] if answers.quoted else [])]),
            "model": self._main_model,
            "small_model": self._parts.small_model,
            "resume": told.resume,
            "state_version": told.state_version,
            "history": told.history,
            "notes": self._notes(landed, folder, told.missed, is_answered=bool(answers.new)) or None,
            "profile": self._run.profile,
            "attachments": await self._parts.attachments.place(self._run.id, folder.record, self._parts.host.owner),
            "allowed_tools": list(answers.allowed_tools),
            "allowed_once": list(answers.allowed_once),
            "options": {"mcp": True, **self._session.options_for(self._run.provider), **self._run.options},
            "system_prompt": said.system_prompt,
            "environment": dict(said.environment),
            "commands": dict(said.commands),
            "mcp_servers": said.mcp_servers(),
            "limits": {
                **said.limits(self._parts.limits.seconds, self._parts.limits.output_bytes),
                "keep_seconds": self._parts.limits.keep_seconds,
            },
        }
        await self._parts.host.send_files(self._session, worker)  # with those that came with the message
        try:
            after = (await worker.link.call("POST", "/run", body)).checked().get("after")
        except Conflict:  # it still works on a run that this session has given up
            await worker.link.call("POST", "/cancel", {"reason": "superseded"})
            raise
        self._after = after if isinstance(after, int) else None
        for question_id in answers.new:
            await self._parts.questions.delivered(self._run, question_id)
        if told.reason is not None:
            run, data = self._run, {"reason": told.reason}
            await self._parts.runs.tell(run.session_id, run.id, run.attempt, CONVERSATION_REBUILT, data)

    def _notes(
        self, landed: Mapping[str, Any] | None, folder: SessionFolder, missed: str | None, *, is_answered: bool
    ) -> str:
        is_cut_off = self._run.started_at is not None and self._run.attempt > 1 and not is_answered
        more = [CUT_OFF] if is_cut_off else []
        if missed is not None:
            more.append(f"{MISSED}\n\n{missed}\n")
        return turn_notes(landed, folder.refreshed, more=more)

    async def _followed(self, worker: LiveWorker) -> RunEnd:
        """Write down what the executor tells, to the end of the attempt."""
        if self._run.state not in _AT_WORK:
            return RunEnd(outcome="canceled")
        watch = self._parts.questions.watch(self._run, self._told, worker.link, self._settle)
        beside = [
            asyncio.create_task(self._tell_cancel(worker)),
            asyncio.create_task(watch.watch()),
            asyncio.create_task(self._steering.deliver(worker.link)),
            asyncio.create_task(snapshot_every(self._parts.snapshots, self._parts.host, self._session)),
        ]
        if (most := self._parts.host.limits.max_disk) is not None:
            guard = guard_disk(worker.link, worker.driver, worker.sandbox_id, folders=worker.folders, most=most)
            beside.append(asyncio.create_task(guard))
        try:
            return await self._read(worker, watch)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _settle(self, is_waiting: bool) -> None:
        """The run waits for a person, or does not any more."""
        states = (RunState.RUNNING, RunState.WAITING_HUMAN)
        await self._move_on(*(states if is_waiting else reversed(states)))

    async def _read(self, worker: LiveWorker, watch: QuestionWatch) -> RunEnd:
        after = self._after
        if after is None:
            after = await self._parts.log.last(self._run.id, self._run.attempt)
        error: Mapping[str, Any] = {}
        async with aclosing(gathered(worker.link.events(after))) as batches:
            async for batch in batches:
                mine = [event for event in batch if self._is_mine(event)]
                if mine:
                    within = self._said.answer_within
                    await self._parts.log.append(self._run.id, self._run.attempt, mine, answer_within=within)
                if any(event.get("type") == REQUESTED for event in mine):
                    watch.asked()
                for event in mine:
                    data = _data(event)
                    if event.get("type") == "run.error":
                        error = data
                    if event.get("type") == "run.finished":
                        return RunEnd.told(data, error)
        raise Unavailable("The executor's events ended before the run did.")

    def _is_mine(self, event: Mapping[str, Any]) -> bool:
        return event.get("run_id") == str(self._run.id) and event.get("attempt") == self._told

    async def _tell_cancel(self, worker: LiveWorker) -> None:
        await self._canceled.wait()
        with suppress(ContextbaseError):
            await worker.link.call("POST", "/cancel", {"run_id": str(self._run.id), "reason": "user"})

    async def _finish(self, end: RunEnd) -> None:
        """Land and store what was done. Both bear being done twice."""
        if await self._is_parked(end):
            return
        is_canceled = self._canceled.is_set() or end.outcome == "canceled"
        if self._run.state in _AT_WORK:
            await self._move_on(self._run.state, RunState.SYNCING, end.facts())
        reason = SnapshotReason.MESSAGE_STOP if is_canceled else SnapshotReason.RUN_FINISHED
        await self._parts.host.bring_back(self._session, reason)
        if end.outcome == "completed" and not is_canceled:
            report = await self._parts.landing.land(self._session, self._run)
        else:
            because = "the run was canceled" if is_canceled else "the run failed"
            report = await self._parts.landing.keep(self._session, because)
        await self._parts.host.sync(self._session, reason, self._run.id)
        await self._end(end, report, is_canceled=is_canceled)

    async def _is_parked(self, end: RunEnd) -> bool:
        """Put it aside if its agent's process ended because a person takes long, or has died meanwhile."""
        now = await self._parts.runs.get(self._run.id)
        if now.attempt == self._run.attempt:  # the last move may have been cut off after it was made
            self._run = now
        ends_here = end.outcome == "canceled" or (end.outcome == "failed" and end.code == _DIED)
        if not ends_here or self._canceled.is_set() or not await self._parts.questions.waits(self._run):
            return False
        await self._parts.host.sync(self._session, SnapshotReason.PARKED)
        await self._parts.queue.wait_for_answer(self._run.id, self._run.attempt)
        return True

    async def _end(self, end: RunEnd, report: LandingReport, *, is_canceled: bool) -> None:
        facts = RunFacts(landed=report.to_json())
        if is_canceled:
            canceled = RunFacts(reason="canceled", message="The run was canceled.", landed=report.to_json())
            await self._move(RunState.CANCELED, canceled)
        elif end.outcome != "completed":
            await self._move(RunState.FAILED, replace(end.facts(), landed=report.to_json()))
        else:
            await self._move_on(RunState.SYNCING, RunState.EXPORTED, facts)
            await self._move_on(RunState.EXPORTED, RunState.SUCCEEDED)

    async def _give_back(self, code: str, message: str) -> None:
        """For another attempt, here or elsewhere; the queue ends it after a few."""
        await self._parts.host.let_go(self._session.id)
        with suppress(LeaseLost):
            await self._parts.queue.release(self._run.id, self._run.attempt, reason=code, message=message)

    async def _stop_agent(self) -> None:
        """Whoever has the run now works on it from the snapshot: this copy must not go on."""
        worker = self._parts.host.live(self._session.id)
        if worker is not None:
            with suppress(ContextbaseError):
                await worker.link.call("POST", "/cancel", {"run_id": str(self._run.id), "reason": "superseded"})

    async def _move_on(self, before: RunState, after: RunState, facts: RunFacts | None = None) -> None:
        """Unless an earlier process of this machine got further."""
        if self._run.state is before:
            await self._move(after, facts)

    async def _move(self, after: RunState, facts: RunFacts | None = None) -> None:
        self._run = await self._parts.runs.move(
            self._run.id, self._run.attempt, self._run.state, after, facts or RunFacts()
        )


def _check_servers(provider: str, said: RunSettings) -> None:
    """An agent that ignored them would work without tools that it was given."""
    adapter = adapter_named(provider)
    if said.mcp_servers() and (adapter is None or Capability.MCP not in adapter.capabilities):
        raise SetupFailed(
            f"The session's configuration names MCP servers, and the agent {provider} cannot use any. Choose another "
            "provider, or take them out: contextbase agent-config set."
        )


def _data(event: Mapping[str, Any]) -> Mapping[str, Any]:
    data = event.get("data")
    return data if isinstance(data, dict) else {}
