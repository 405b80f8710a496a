"""The cookie of a browser login: no script reads it, no other site sends it."""

from typing import Final

from contextbase.interfaces.api.authentication import COOKIE

__all__ = ["ended_cookie", "login_cookie"]

_SECONDS: Final = 30 * 86400


def login_cookie(secret: str, scheme: str) -> bytes:
    """As a header."""
    return _cookie(secret, _SECONDS, scheme)


def ended_cookie(scheme: str) -> bytes:
    """Takes the cookie away."""
    return _cookie("", 0, scheme)


def _cookie(value: str, seconds: int, scheme: str) -> bytes:
    secure = "; Secure" if scheme == "https" else ""
    return f"{COOKIE}={value}; HttpOnly; Max-Age={seconds}; Path=/; SameSite=strict{secure}".encode()
