"""Logging in by a provider: which there is, the way there, and the way back. Providers add to the query."""

import html
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from contextbase.errors import ContextbaseError, NotFound
from contextbase.identity.logins.openid_login import ATTEMPT_LIFE, OpenIdLogins
from contextbase.interfaces.api.authentication import origin_of, services_of
from contextbase.interfaces.api.login_cookie import log_browser_in
from contextbase.interfaces.api.plain_page import plain_page
from contextbase.interfaces.api.problems import problem_of
from contextbase.wire.login import LoginWays

__all__ = ["ATTEMPT_COOKIE", "open_router"]

open_router = APIRouter(include_in_schema=False)

ATTEMPT_COOKIE: Final = "contextbase_attempt"
_PLACE: Final = "/login/oidc"
_LONGEST: Final = 4000


@open_router.get("/login/ways")
async def login_ways(request: Request) -> LoginWays:
    """How people can log in here, beside passwords and tokens; for the login page."""
    openid = services_of(request).people.openid
    return LoginWays(oidc=None if openid is None else openid.provider.client.name)


@open_router.get(_PLACE)
async def begin(request: Request, then: Annotated[str, Query(max_length=1000)] = "/") -> Response:
    """Send the browser to the provider. What it brings back is good in this browser alone."""
    try:
        sent = await _openid(request).begin(_callback(request), then)
    except ContextbaseError as error:
        return _failed(error)
    response = RedirectResponse(sent.address, status_code=303)
    response.raw_headers.append((b"set-cookie", _cookie(sent.browser_secret, ATTEMPT_LIFE.seconds, request)))
    return response


@open_router.get(f"{_PLACE}/callback")
async def finish(
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=_LONGEST)] = "",
    iss: Annotated[str, Query(max_length=_LONGEST)] = "",
) -> Response:
    """The provider sends the browser here. A refusal there comes without a code, and is refused here too."""
    try:
        secret, page = await _openid(request).finish(
            state=state,
            browser_secret=request.cookies.get(ATTEMPT_COOKIE, ""),
            code=code,
            issuer=iss,
            origin=origin_of(request),
        )
    except ContextbaseError as error:
        return _failed(error)
    response = await log_browser_in(request, RedirectResponse(page, status_code=303), secret)
    response.raw_headers.append((b"set-cookie", _cookie("", 0, request)))
    return response


def _openid(request: Request) -> OpenIdLogins:
    openid = services_of(request).people.openid
    if openid is None:
        raise NotFound("This server has no login provider; the setting oidc_issuer names one.")
    return openid


def _callback(request: Request) -> str:
    base = services_of(request).settings.server.public_url or str(request.base_url)
    return f"{base.rstrip('/')}{_PLACE}/callback"


def _cookie(value: str, seconds: int, request: Request) -> bytes:
    """The way back begins on the provider's page: a cookie that only this site's own pages send would be missing."""
    secure = "; Secure" if request.url.scheme == "https" else ""
    return f"{ATTEMPT_COOKIE}={value}; HttpOnly; Max-Age={seconds}; Path={_PLACE}; SameSite=lax{secure}".encode()


def _failed(error: ContextbaseError) -> Response:
    problem = problem_of(error)
    sentence = f"<p>{html.escape(problem.detail)}</p><p><a href=/>Log in</a></p>"
    return plain_page("Login failed", sentence, status=problem.status)
