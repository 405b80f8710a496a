"""Where the streams lead that a session's programs open. Whose they are is decided by the sandbox they come from."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from contextbase.channel.stream import ChannelStream
from contextbase.identity.model import Caller
from contextbase.models.egress.proxy import EgressProxy, EgressReport
from contextbase.models.http_stream import AsgiApp, serve
from contextbase.models.model import CURRENT_CALLER, CURRENT_CONTEXT, ModelContext
from contextbase.models.stream_apps import StreamApps
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.executor_link import StreamHandler
from contextbase.sessions.model import AgentSession, RunId, SessionId

__all__ = ["RunsAtWork", "SessionWaysOut"]


class RunsAtWork:
    """Which run works in which session on this machine: its programs act on that run's account, and on nobody's when
    there is none."""

    def __init__(self) -> None:
        self._contexts: dict[SessionId, ModelContext] = {}

    @contextmanager
    def working(self, context: ModelContext) -> Iterator[None]:
        session_id = SessionId(context.session_id)
        self._contexts[session_id] = context
        try:
            yield
        finally:
            del self._contexts[session_id]

    def context(self, session_id: SessionId) -> ModelContext | None:
        return self._contexts.get(session_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionWaysOut:
    at_work: RunsAtWork
    runs: AgentRuns
    gateway: AsgiApp
    proxy: EgressProxy
    apps: StreamApps  # of layers above

    def handlers(self, session: AgentSession) -> Mapping[str, StreamHandler]:
        """By kind of stream."""

        async def model(stream: ChannelStream) -> None:
            await serve(stream, self.gateway, {CURRENT_CONTEXT: lambda: self.at_work.context(session.id)})

        async def proxy(stream: ChannelStream) -> None:
            async def tell(report: EgressReport) -> None:
                await self._tell(session, report)

            await self.proxy.serve(stream, session.project_id, tell)

        def caller() -> Caller | None:
            return None if self.at_work.context(session.id) is None else session.caller()

        async def mcp(stream: ChannelStream) -> None:
            app = self.apps.find("mcp")
            if app is None:
                await stream.cut()
            else:
                await serve(stream, app, {CURRENT_CALLER: caller})

        return {"model": model, "proxy": proxy, "mcp": mcp}

    async def _tell(self, session: AgentSession, report: EgressReport) -> None:
        """Every host that was asked for is in the events of the run at work."""
        context = self.at_work.context(session.id)
        if context is not None:
            data = {"host": report.host, "port": report.port, "outcome": str(report.outcome)}
            await self.runs.tell(session.id, RunId(context.run_id), context.attempt, "egress", data)
