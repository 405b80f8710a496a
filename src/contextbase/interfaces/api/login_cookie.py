"""The cookie of a browser login: no script reads it, no other site sends it."""

from typing import Final

from fastapi import Request
from fastapi.responses import Response

from contextbase.interfaces.api.authentication import COOKIE, services_of

__all__ = ["ended_cookie", "log_browser_in", "login_cookie"]

_SECONDS: Final = 30 * 86400


def login_cookie(secret: str, scheme: str) -> bytes:
    """As a header."""
    return _cookie(secret, _SECONDS, scheme)


def ended_cookie(scheme: str) -> bytes:
    """Takes the cookie away."""
    return _cookie("", 0, scheme)


async def log_browser_in(request: Request, response: Response, secret: str) -> Response:
    if before := request.cookies.get(COOKIE):  # somebody may have put it there: it ends, whoever's it is
        await services_of(request).people.logins.end(before)
    response.raw_headers.append((b"set-cookie", login_cookie(secret, request.url.scheme)))
    return response


def _cookie(value: str, seconds: int, scheme: str) -> bytes:
    secure = "; Secure" if scheme == "https" else ""
    return f"{COOKIE}={value}; HttpOnly; Max-Age={seconds}; Path=/; SameSite=strict{secure}".encode()
