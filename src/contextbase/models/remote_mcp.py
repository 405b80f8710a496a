"""MCP servers elsewhere, for agents in sandboxes: the agent's program asks us on loopback, and we ask the server, with
credentials that stay here. An ASGI application; whose request it is comes from the stream's state."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from contextbase.errors import ContextbaseError, Forbidden
from contextbase.ids import ProjectId
from contextbase.models.addresses import AddressChecker
from contextbase.models.egress.proxy import EgressOutcome, EgressReport, HostSource
from contextbase.models.http_stream import AsgiReceive, AsgiSend, whole_body

__all__ = ["REMOTE_SERVERS", "RemoteMcp", "RemoteMcpServer", "RemoteServers", "path_of_server"]

REMOTE_SERVERS: Final = "remote_servers"
"""The key in a stream's state: a callable that gives the `RemoteServers` of the run at work there, or None."""

_PREFIX: Final = "/servers/"
_METHODS: Final = frozenset({"POST", "GET", "DELETE"})
_ASKED: Final = frozenset({b"accept", b"content-type", b"mcp-session-id", b"mcp-protocol-version", b"last-event-id"})
_ANSWERED: Final = frozenset({b"content-type", b"mcp-session-id", b"mcp-protocol-version"})
_REDIRECTED: Final = range(300, 400)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteMcpServer:
    name: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # with credentials
    needs_egress: bool  # a person named it: its host must be among those that the project's sandboxes may reach


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteServers:
    """Of a run at work."""

    project_id: ProjectId
    servers: Mapping[str, RemoteMcpServer]
    on_host: Callable[[EgressReport], Awaitable[None]]


def path_of_server(name: str) -> str:
    """Below the loopback address of MCP."""
    return f"{_PREFIX}{name}"


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RemoteMcp:
    def __init__(self, *, client: httpx.AsyncClient, hosts: HostSource, checker: AddressChecker | None = None) -> None:
        self._client = client
        self._hosts = hosts
        self.checker = checker or AddressChecker()

    def serves(self, path: str) -> bool:
        return path.startswith(_PREFIX)

    async def __call__(self, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend) -> None:
        has_begun = False
        try:
            run, server = _wanted(scope)
            request = await self._request(run, server, scope, await whole_body(receive))
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code in _REDIRECTED:
                    raise _Refused(502, f"The MCP server '{server.name}' sends its callers to another address.")
                has_begun = True
                headers = [(name.lower(), value) for name, value in response.headers.raw]
                kept = [(name, value) for name, value in headers if name in _ANSWERED]
                await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
                async for piece in response.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body"})
            finally:
                await response.aclose()
        except _Refused as refused:
            await _answer(send, refused.status, str(refused))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if has_begun:  # an answer without its end is noticed
                raise ConnectionAbortedError("An MCP server broke off its answer.") from None
            await _answer(send, 502, f"The MCP server does not answer ({type(error).__name__}).")

    async def _request(
        self, run: RemoteServers, server: RemoteMcpServer, scope: MutableMapping[str, Any], body: bytes
    ) -> httpx.Request:
        """To an address that was checked, and to no other."""
        url = httpx.URL(server.url)
        port = url.port or (443 if url.scheme == "https" else 80)

        async def told(outcome: EgressOutcome) -> None:
            await run.on_host(EgressReport(host=url.host, port=port, outcome=outcome))

        if server.needs_egress and not (await self._hosts.allowed(run.project_id)).allows(url.host, port):
            await told(EgressOutcome.REFUSED)
            message = f"The MCP server '{server.name}' is at {url.host}:{port}, which sandboxes here may not reach."
            raise _Refused(403, f"{message} An administrator can allow it: contextbase project egress.")
        try:
            found = await self.checker.resolve(url.host, port)
        except Forbidden as error:
            await told(EgressOutcome.REFUSED)
            raise _Refused(403, error.message) from None
        except ContextbaseError:
            await told(EgressOutcome.UNREACHABLE)
            raise _Refused(502, f"The MCP server '{server.name}' cannot be found at {url.host}.") from None
        await told(EgressOutcome.CONNECTED)
        asked = [(name, value) for name, value in scope["headers"] if name.lower() in _ASKED]
        own = [(name.encode(), value.encode()) for name, value in server.headers.items()]
        headers = [*asked, *own, (b"host", url.netloc), (b"accept-encoding", b"identity")]
        return self._client.build_request(
            scope["method"],
            url.copy_with(host=found.host),
            headers=headers,
            content=body,
            extensions={"sni_hostname": url.host},
        )


def _wanted(scope: MutableMapping[str, Any]) -> tuple[RemoteServers, RemoteMcpServer]:
    current: Callable[[], RemoteServers | None] | None = scope.get("state", {}).get(REMOTE_SERVERS)
    run = None if current is None else current()
    if run is None:
        raise _Refused(409, "No run is at work here, so no MCP server can be asked.")
    server = run.servers.get(scope["path"].removeprefix(_PREFIX))
    if server is None:
        raise _Refused(404, "The session's configuration has no such MCP server.")
    if scope["method"] not in _METHODS:
        raise _Refused(405, "An MCP server takes POST, GET and DELETE.")
    return run, server


async def _answer(send: AsgiSend, status: int, message: str) -> None:
    body = f"{message}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
