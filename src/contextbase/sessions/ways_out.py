"""Where the streams lead that a session's programs open. Whose they are is decided by the sandbox they come from."""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from contextbase.channel.stream import ChannelStream
from contextbase.identity.model import Caller
from contextbase.models.egress.proxy import EgressProxy, EgressReport
from contextbase.models.http_stream import AsgiApp, AsgiReceive, AsgiSend, serve
from contextbase.models.model import CURRENT_CALLER, CURRENT_CONTEXT, ModelContext
from contextbase.models.remote_mcp import REMOTE_SERVERS, RemoteMcp, RemoteMcpServer, RemoteServers
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
        self._servers: dict[SessionId, Mapping[str, RemoteMcpServer]] = {}

    @contextmanager
    def working(self, context: ModelContext, servers: Mapping[str, RemoteMcpServer]) -> Iterator[None]:
        """`servers`: of MCP, that its agent may ask through us."""
        session_id = SessionId(context.session_id)
        self._contexts[session_id], self._servers[session_id] = context, servers
        try:
            yield
        finally:
            del self._contexts[session_id], self._servers[session_id]

    def servers(self, session_id: SessionId) -> Mapping[str, RemoteMcpServer]:
        return self._servers.get(session_id, {})

    def context(self, session_id: SessionId) -> ModelContext | None:
        return self._contexts.get(session_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionWaysOut:
    at_work: RunsAtWork
    runs: AgentRuns
    gateway: AsgiApp
    proxy: EgressProxy
    remote_mcp: RemoteMcp
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

        told: set[tuple[RunId, str]] = set()  # hosts of MCP servers, which are asked many times

        async def tell_once(report: EgressReport) -> None:
            context = self.at_work.context(session.id)
            if context is not None and (key := (RunId(context.run_id), str(report))) not in told:
                told.add(key)
                await self._tell(session, report)

        def servers() -> RemoteServers | None:
            if self.at_work.context(session.id) is None:
                return None
            found = self.at_work.servers(session.id)
            return RemoteServers(project_id=session.project_id, servers=found, on_host=tell_once)

        async def mcp(stream: ChannelStream) -> None:
            state = {CURRENT_CALLER: caller, REMOTE_SERVERS: servers}
            await serve(stream, self._mcp, state)

        return {"model": model, "proxy": proxy, "mcp": mcp}

    async def _mcp(self, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend) -> None:
        """This server's own tools, or an MCP server elsewhere."""
        app = self.remote_mcp if self.remote_mcp.serves(scope["path"]) else self.apps.find("mcp")
        if app is not None:
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body"})

    async def _tell(self, session: AgentSession, report: EgressReport) -> None:
        """Every host that was asked for is in the events of the run at work."""
        context = self.at_work.context(session.id)
        if context is not None:
            data = {"host": report.host, "port": report.port, "outcome": str(report.outcome)}
            await self.runs.tell(session.id, RunId(context.run_id), context.attempt, "egress", data)
