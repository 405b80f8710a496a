"""A question to a server that needs no client: quick to import, for commands that ask one or two things."""

import http.client
import json
import re
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from contextbase.errors import InvalidInput, Unavailable, error_of_code

__all__ = ["check_server", "get"]

_SECONDS: Final = 30.0
_MOST_BYTES: Final = 1 << 20


def get(url: str, token: str, path: str, *, accept: frozenset[int] = frozenset({200}), **query: str) -> dict[str, Any]:
    """The JSON object at a path of a server. Raises the error the server answered with, or `Unavailable`."""
    check_server(url, token)
    address = urlsplit(url)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=_SECONDS)
    target = address.path.rstrip("/") + path + ("?" + urlencode(query) if query else "")
    try:
        connection.request("GET", target, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})
        response = connection.getresponse()
        status, body = response.status, response.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(
            f"The server at {url} does not answer ({getattr(error, 'strerror', None) or type(error).__name__}). Check "
            "that it is running (`contextbase up`) and that the URL is right."
        ) from error
    finally:
        connection.close()
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Unavailable(f"What {url} answers (status {status}) is not contextbase's. Is the URL right?")
    if status not in accept:
        raise error_of_code(str(answer.get("code", "")), str(answer.get("detail", f"The server answered {status}.")))
    return answer


def check_server(url: str, token: str) -> None:
    """Raise `InvalidInput` for what cannot be a server's address or a token."""
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidInput("The token is malformed: a token is one word of ASCII characters. Was it copied whole?")
    try:
        _check_address(url)
    except ValueError as error:
        raise InvalidInput(f"{url[:200]!r} is not the URL of a server: {error}.") from error


def _check_address(url: str) -> None:
    """Raises `ValueError`; a client would only find that nobody answers."""
    if re.search(r"[\x00-\x20\x7f]", url):
        raise ValueError("it has spaces or control characters")
    address = urlsplit(url)
    if address.scheme not in ("http", "https"):
        raise ValueError("it must start with http:// or https://")
    if not address.hostname or address.port == 0:
        raise ValueError("it names no host or port")
