"""Whether somebody may still do what they began: asked again while it lasts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import HTTPConnection

from contextbase.errors import ContextbaseError, DatabaseUnavailable
from contextbase.identity.model import Caller
from contextbase.interfaces.api.authentication import authenticate

__all__ = ["CHECKED_SECONDS", "Watch", "until_refused"]

CHECKED_SECONDS: Final = 0.5
"""How long somebody who was disabled, or lost a role, a share or a token, may go on unnoticed."""

Watch = Callable[[], Awaitable[ContextbaseError]]
"""Ends when the caller may not go on, with the reason."""


async def until_refused(connection: HTTPConnection, check: Callable[[Caller], Awaitable[object]]) -> ContextbaseError:
    """Ends with what `check`, or the authentication, raises about the caller as of now."""
    while True:
        await asyncio.sleep(CHECKED_SECONDS)
        try:
            await check(await authenticate(connection))
        except DatabaseUnavailable:
            continue  # asked again when it answers
        except ContextbaseError as error:
            return error
