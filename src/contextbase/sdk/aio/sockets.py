"""Web sockets to a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from contextbase.errors import ContextbaseError, Unavailable
from contextbase.sdk.http import error_of
from contextbase.wire.problem import Problem

__all__ = ["opened_socket"]


@asynccontextmanager
async def opened_socket(address: str, headers: dict[str, str]) -> AsyncIterator[ClientConnection]:
    """It is closed with the block. Raises what the server answered instead, or `Unavailable`."""
    try:
        socket = await connect(address, additional_headers=headers, proxy=None, max_size=None)
    except InvalidStatus as refusal:
        raise _error_of(refusal) from refusal
    except (OSError, WebSocketException) as error:
        raise Unavailable(f"No connection could be opened ({type(error).__name__}).") from error
    async with socket:
        yield socket


def _error_of(refusal: InvalidStatus) -> ContextbaseError:
    try:
        return error_of(Problem.model_validate_json(refusal.response.body or b""))
    except ValidationError:
        return Unavailable(f"The server answered with status {refusal.response.status_code} and no reason.")
