"""Codes that log one browser in, once and soon: what a start prints may stay in a terminal or a log for long."""

import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

__all__ = ["CODE_MINUTES", "LoginCodes"]

CODE_MINUTES: Final = 10


class LoginCodes:
    """Kept in this process only, by hash."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._expiries: dict[bytes, float] = {}

    def make(self) -> str:
        code = secrets.token_urlsafe(32)
        self._expiries[_hash(code)] = self._now() + CODE_MINUTES * 60
        return code

    def take(self, code: str) -> bool:
        """Whether it is good; from now on it is not."""
        return self._expiries.pop(_hash(code), -1.0) >= self._now()


def _hash(code: str) -> bytes:
    return sha256(code.encode(errors="surrogatepass")).digest()
