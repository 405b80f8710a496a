"""Refuses query parameters that a route does not have: a misspelt filter must not look like one that matched."""

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.requests import HTTPConnection

__all__ = ["known_query"]


async def known_query(connection: HTTPConnection) -> None:
    """A dependency of every route."""
    if not connection.scope["query_string"]:
        return
    names = sorted(_names(connection.scope["route"].dependant))
    unknown = [name for name in connection.query_params if name not in names]
    if not unknown:
        return
    takes = f"it takes {', '.join(names)}" if names else "it takes none"
    problems = [
        {"type": "extra_forbidden", "loc": ("query", name), "msg": f"this route has no such parameter; {takes}"}
        for name in unknown
    ]
    if connection.scope["type"] == "websocket":
        raise WebSocketRequestValidationError(problems)
    raise RequestValidationError(problems)


def _names(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        yield parameter.alias
    for dependency in dependant.dependencies:
        yield from _names(dependency)
