"""Passwords as argon2id hashes, computed in threads of their own: few at a time, because each takes 64 MB."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from contextbase.errors import InvalidInput, TooBusy

__all__ = ["PasswordHashing", "check_password"]

T = TypeVar("T")

_AT_ONCE: Final = 2
_MOST_WAITING: Final = 64
_SHORTEST: Final = 10
_LONGEST: Final = 1000


def check_password(password: str, login_name: str) -> None:
    """For new ones."""
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise InvalidInput(f"A password has {_SHORTEST} to {_LONGEST} characters.")
    if login_name.lower() in password.lower() or len(set(password)) < 4:
        raise InvalidInput("This password is too easy to guess: it has the login name in it, or repeats itself.")


class PasswordHashing:
    def __init__(self) -> None:
        self._hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="passwords")
        self._waiting = 0
        self._nobodys: str | None = None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def hash(self, password: str) -> str:
        return await self._run(partial(self._hasher.hash, password))

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether it is the password. With None it takes as long, and is not."""
        if stored is None:
            if self._nobodys is None:
                self._nobodys = await self.hash("nobody's password")
            await self._run(partial(self._verified, self._nobodys, password))
            return False
        return await self._run(partial(self._verified, stored, password))

    def is_outdated(self, stored: str) -> bool:
        """Whether it was made with other costs than today's."""
        return self._hasher.check_needs_rehash(stored)

    def _verified(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= _MOST_WAITING:
            raise TooBusy("Too many people log in at the same time; try again in a moment.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1
