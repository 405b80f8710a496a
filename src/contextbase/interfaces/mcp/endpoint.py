"""`/mcp`: who may ask, checked before the protocol is looked at. The SDK is imported with the first request, for that
takes most of a second."""

import asyncio
import ipaddress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from contextbase.bootstrap import Services
from contextbase.errors import ContextbaseError, Forbidden, InvalidInput, Unauthenticated
from contextbase.identity.model import Caller
from contextbase.interfaces.api.authentication import FORWARDED_CALLER, authenticate, stream_caller_of
from contextbase.interfaces.api.forwarding.sent_on import Forwarder
from contextbase.interfaces.api.problems import error_response, problem_response
from contextbase.interfaces.mcp.request import HELD_ELSEWHERE
from contextbase.threads import in_thread

if TYPE_CHECKING:
    from contextbase.interfaces.mcp.server import McpServer

__all__ = ["AGENT_HEADER", "PROJECT_HEADER", "McpEndpoint"]

PROJECT_HEADER: Final = "x-contextbase-project"
AGENT_HEADER: Final = "x-contextbase-agent"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_LONGEST_HEADER: Final = 200


class McpEndpoint:
    """An ASGI application. Nothing is kept between requests: whoever sends the token is the caller, each time. On a
    sandbox's stream it is whom the server knows the stream to belong to."""

    def __init__(self, services: Services, forwarder: Forwarder | None) -> None:
        self._services = services
        self._forwarder = forwarder
        self._hosts = _hosts(services.core.settings.server.host, services.core.settings.server.public_url)
        self._server: McpServer | None = None
        self._importing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        current = stream_caller_of(request)
        is_stream = current is not None
        if is_stream and scope["method"] != "POST":
            await problem_response(405, "invalid_input", "MCP is asked by POST.")(scope, receive, send)
            return
        try:
            is_known = is_stream or FORWARDED_CALLER in scope  # by a server that has looked, or by its stream
            # A login's cookie is for the pages of this server.
            if "authorization" not in request.headers and not is_known:
                raise Unauthenticated(
                    "Send a token: 'Authorization: Bearer cb_…'. `contextbase token create` makes one."
                )
            caller = await (authenticate(request) if current is None else self._at_work(current()))
            if not is_known:
                self._check_host(request)
            # On a stream the caller's grant says what it is about.
            chosen = {name: None if is_stream else _header(request, name) for name in (PROJECT_HEADER, AGENT_HEADER)}
        except _Misdirected as error:
            await problem_response(421, "invalid_input", str(error))(scope, receive, send)
            return
        except ContextbaseError as error:
            await error_response(error)(scope, receive, send)
            return
        scope.setdefault("state", {}).update(caller=caller, project=chosen[PROJECT_HEADER], agent=chosen[AGENT_HEADER])
        server = self._server or await self._imported()
        if self._forwarder is None or is_known:  # a stream ends where the workspace is
            await server.answer(scope, receive, send)
        else:
            await self._answer_or_send_on(server, self._forwarder, scope, receive, send)

    async def _at_work(self, caller: Caller | None) -> Caller:
        """A request on a sandbox's stream has no token: the server knows whose stream it is. Roles are read again."""
        if caller is None:
            raise Unauthenticated("No run is at work in this sandbox.")
        return await self._services.core.identity.current(caller)

    async def _answer_or_send_on(
        self, server: "McpServer", forwarder: Forwarder, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """The tools and files of a workspace are on the machine that holds it."""
        state: dict[str, Any] = scope["state"]

        async def send_unless_elsewhere(message: Message) -> None:
            if HELD_ELSEWHERE not in state:
                await send(message)

        await server.answer(scope, receive, send_unless_elsewhere)
        if HELD_ELSEWHERE in state:
            await forwarder.answer(scope, receive, send, state[HELD_ELSEWHERE])

    async def _imported(self) -> "McpServer":
        async with self._importing:
            if self._server is None:
                module = await in_thread(import_module, "contextbase.interfaces.mcp.server")
                self._server = module.McpServer(self._services)
            return self._server

    def _check_host(self, request: Request) -> None:
        """A page of another site could reach a server on this machine by a name of its own (DNS rebinding), and it
        says where it comes from."""
        host = request.headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            raise _Misdirected(f"This server is not {host[:100]!r}. Set CONTEXTBASE_PUBLIC_URL if it has that name.")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Forbidden("A page of another site cannot use this server.")


class _Misdirected(Exception):
    pass


def _hosts(listens_on: str, public_url: str | None) -> frozenset[str] | None:
    """The names this server answers to; None: any. It listens on all addresses, and nobody named it."""
    named = frozenset() if public_url is None else frozenset({urlsplit(public_url).hostname or ""})
    try:
        is_everywhere = ipaddress.ip_address(listens_on).is_unspecified
    except ValueError:
        is_everywhere = False
    if is_everywhere and not named:
        return None
    return named | _LOOPBACK | {listens_on.lower()}


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _header(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    if value is not None and not (0 < len(value) <= _LONGEST_HEADER and value.isprintable()):
        raise InvalidInput(f"The header {name} must be a name of at most {_LONGEST_HEADER} characters.")
    return value
