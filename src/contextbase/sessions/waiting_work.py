"""The work that runs left uncommitted in a session's folder: it lands, or is thrown away, when the owner says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from contextbase.errors import NoMachine
from contextbase.identity.model import Caller
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.landing import LandingReport, RunLanding
from contextbase.sessions.model import AgentRun, AgentSession, RunFacts, SessionId
from contextbase.sessions.service import SessionService
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.worker_host import WorkerHost
from contextbase.vocabulary import LandingState
from contextbase.workspaces.service import WorkspaceService

__all__ = ["WaitingWork"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingWork:
    """Both raise `Conflict` while a run of the session has not ended, and `HeldElsewhere` on a machine that lacks the
    session's folder."""

    service: SessionService
    runs: AgentRuns
    workspaces: WorkspaceService
    landing: RunLanding
    host: WorkerHost | None  # None: this server is no machine

    async def land(self, caller: Caller, session_id: SessionId) -> LandingReport:
        """Commit it through the gate, as the session's agent."""
        async with self._decided(caller, session_id) as (host, session, run):
            report = await self.landing.commit(session, run)
        await host.sync(session, SnapshotReason.RUN_FINISHED, run.id)
        await self._tell(run, report)
        return report

    async def discard(self, caller: Caller, session_id: SessionId) -> LandingReport:
        """Throw it away. The conversation stays, and the agent program's own data with it."""
        async with self._decided(caller, session_id) as (host, session, run):
            left = await self.landing.keep(session, "")
            if left.state is LandingState.NOTHING and not left.held_back:
                return left
            await host.start_over(session)
        thrown = tuple({**path, "status": "discarded"} for path in left.paths)
        counts = {"discarded": sum((left.counts or {}).values())}
        report = replace(left, state=LandingState.DISCARDED, counts=counts, paths=thrown, held_back=0, because=None)
        await self._tell(run, report)
        return report

    @asynccontextmanager
    async def _decided(
        self, caller: Caller, session_id: SessionId
    ) -> AsyncIterator[tuple[WorkerHost, AgentSession, AgentRun]]:
        """The session's folder is here, and no run gets it while the block lasts."""
        session, _ = await self.service.at_rest(caller, session_id)
        host = await self._host(session)
        async with host.undisturbed(session_id):
            session, run = await self.service.at_rest(caller, session_id)  # or one came meanwhile
            yield host, session, run

    async def _host(self, session: AgentSession) -> WorkerHost:
        _, record = await self.workspaces.opened(session.caller(), session.workspace)
        if self.host is None:
            await self.workspaces.refuse_unless_machine()
            raise NoMachine("No machine can make the session's folder ready; start one.")
        if record is None or not await self.host.rows.have_here(session):  # it is made again as it was stored
            await self.host.folder(session)
        else:
            await self.host.catch_up(session)
        return self.host

    async def _tell(self, run: AgentRun, report: LandingReport) -> None:
        """The run's own report is replaced, unless there was nothing to decide about."""
        if report.state is LandingState.NOTHING and (run.landed or {}).get("state") != LandingState.WAITS:
            return
        await self.runs.learn(run.id, run.attempt, RunFacts(landed=report.to_json()))
        told = {"state": str(report.state), "seq": report.seq, "counts": dict(report.counts or {})}
        await self.runs.tell(run.session_id, run.id, run.attempt, "run.landed", told)
