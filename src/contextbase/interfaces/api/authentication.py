"""Who is calling: a bearer token, or the cookie that /login sets. Everything but health and login demands one."""

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from contextbase.bootstrap import AgentServices, CoreServices
from contextbase.errors import Forbidden, Unauthenticated
from contextbase.identity.model import Caller
from contextbase.logs import trace_id
from contextbase.models.model import CURRENT_CALLER

__all__ = [
    "CALLER",
    "COOKIE",
    "FORWARDED_CALLER",
    "LOGIN",
    "RENEWED_COOKIE",
    "AuthenticatedAgents",
    "AuthenticatedCaller",
    "AuthenticatedServices",
    "agents_of",
    "authenticate",
    "origin_of",
    "refuse_foreign_pages",
    "services_of",
    "stream_caller_of",
]

COOKIE: Final = "contextbase_login"
LOGIN: Final = "login_id"
"""Where a request's state has the browser login that it came with."""
RENEWED_COOKIE: Final = "renewed_cookie"
"""Where it has the secret that replaces the one in its cookie: the middleware sends it."""
CALLER: Final = "caller"
"""Where a request's state has who sent it, once that is known."""
FORWARDED_CALLER: Final = "contextbase.forwarded_caller"
"""Where it has the caller whom another server has authenticated: only forwarding/taken_over.py writes it."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def services_of(request: HTTPConnection) -> CoreServices:
    services: CoreServices = request.app.state.services.core
    return services


def agents_of(request: HTTPConnection) -> AgentServices:
    agents: AgentServices = request.app.state.services.agents
    return agents


async def authenticate(request: HTTPConnection) -> Caller:
    """The caller. How the token came, in a header or with a login's cookie, is part of its grant."""
    caller: Caller | None = request.scope.get(FORWARDED_CALLER)
    # Of a person who was authenticated elsewhere the roles are read again.
    caller = await _with_token(request) if caller is None else await services_of(request).identity.current(caller)
    request.scope.setdefault("state", {})[CALLER] = caller
    return caller


async def _with_token(request: HTTPConnection) -> Caller:
    secret, origin = _bearer(request), origin_of(request)
    if secret is None and (cookie := request.cookies.get(COOKIE)):
        refuse_foreign_pages(request)
        return await _with_login(request, cookie, origin)
    if not secret:
        raise Unauthenticated("Send a token: 'Authorization: Bearer cb_…'. `contextbase token create` makes one.")
    return await services_of(request).identity.authenticate(secret, origin=origin, trace_id=trace_id.get())


async def _with_login(request: HTTPConnection, cookie: str, origin: str) -> Caller:
    """A request that lasts is authenticated again and again: its login stays the same when its cookie is replaced."""
    logins, state = services_of(request).people.logins, request.scope.setdefault("state", {})
    if LOGIN in state:
        return await logins.still(state[LOGIN], origin=origin, trace_id=trace_id.get())
    known = await logins.caller(cookie, origin=origin, trace_id=trace_id.get())
    state[LOGIN], state[RENEWED_COOKIE] = known.login_id, known.renewed
    return known.caller


def origin_of(request: HTTPConnection) -> str:
    """The address that a request came from."""
    return request.client.host if request.client else ""


def stream_caller_of(request: HTTPConnection) -> Callable[[], Caller | None] | None:
    """Who calls on a sandbox's stream, to be asked each time; None for a request that came over the network. The state
    is the server's own: nothing in a request reaches it."""
    current: Callable[[], Caller | None] | None = request.scope.get("state", {}).get(CURRENT_CALLER)
    return current


def _bearer(request: HTTPConnection) -> str | None:
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated("The Authorization header must be 'Bearer cb_…'.")
    return secret.strip()


def refuse_foreign_pages(request: HTTPConnection) -> None:
    """A browser sends the cookie along; a page of another site must not be able to change anything with it."""
    if request.scope.get("method") in _SAFE:  # a web socket has none
        return
    host = request.headers.get("host")
    if not host or request.headers.get("origin") not in (f"http://{host}", f"https://{host}"):
        raise Forbidden("A request with the login cookie must come from this server's own page.")


AuthenticatedCaller = Annotated[Caller, Depends(authenticate)]


# Routes ask for the group of services that they need. A dependency that is not async would be run in a thread.
async def _services(request: Request) -> CoreServices:
    return services_of(request)


async def _agents(request: Request) -> AgentServices:
    return agents_of(request)


AuthenticatedServices = Annotated[CoreServices, Depends(_services)]
AuthenticatedAgents = Annotated[AgentServices, Depends(_agents)]
