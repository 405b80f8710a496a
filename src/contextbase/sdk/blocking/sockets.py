# Generated from aio/sockets.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Web sockets to a server."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from contextbase.errors import ContextbaseError, Unavailable
from contextbase.sdk.http import error_of
from contextbase.wire.problem import Problem

__all__ = ["opened_socket"]


@contextmanager
def opened_socket(address: str, headers: dict[str, str]) -> Iterator[ClientConnection]:
    """It is closed with the block. Raises what the server answered instead, or `Unavailable`."""
    try:
        socket = connect(address, additional_headers=headers, proxy=None, max_size=None)
    except InvalidStatus as refusal:
        raise _error_of(refusal) from refusal
    except (OSError, WebSocketException) as error:
        raise Unavailable(f"No connection could be opened ({type(error).__name__}).") from error
    with socket:
        yield socket


def _error_of(refusal: InvalidStatus) -> ContextbaseError:
    try:
        return error_of(Problem.model_validate_json(refusal.response.body or b""))
    except ValidationError:
        return Unavailable(f"The server answered with status {refusal.response.status_code} and no reason.")
