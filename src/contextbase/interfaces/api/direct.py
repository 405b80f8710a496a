"""What agents ask all day long, past FastAPI, whose routing and dependencies take longer than the answer.

The endpoints are the documented ones, called with what FastAPI would have found for them. A request that is not plainly
one of these (another method or content type, a query, a cookie, a key or an ETag in a header, a body that does not fit)
is FastAPI's."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextbase.errors import ContextbaseError
from contextbase.identity.model import Caller
from contextbase.interfaces.api.authentication import authenticate
from contextbase.interfaces.api.problems import error_response

__all__ = ["DirectRoute", "DirectRoutes"]

_FOR_FASTAPI: Final = frozenset({b"idempotency-key", b"if-match", b"if-none-match", b"cookie"})


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectRoute:
    """A POST of JSON."""

    path: str
    body: type[BaseModel]
    answer: Callable[[Any, Caller], Awaitable[Response]]


class DirectRoutes:
    def __init__(self, app: ASGIApp, *, routes: Iterable[DirectRoute]) -> None:
        self._app = app
        self._routes = {route.path: route for route in routes}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        route = self._routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if route is None or scope["query_string"] or not _is_plain(scope["headers"]):
            return self._app(scope, receive, send)
        return self._answered(route, scope, receive, send)

    async def _answered(self, route: DirectRoute, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = route  # what it is counted as
        request = Request(scope)
        try:
            caller = await authenticate(request)
            messages = await _messages(receive)
            try:
                body = route.body.model_validate_json(b"".join(message.get("body", b"") for message in messages))
            except ValidationError:
                await self._app(scope, _again(messages, receive), send)
                return
            response = await route.answer(body, caller)
        except ContextbaseError as error:
            response = error_response(error)
        await response(scope, receive, send)


def _is_plain(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    has_token = is_json = False
    for name, value in headers:
        if name in _FOR_FASTAPI:
            return False
        has_token |= name == b"authorization"
        is_json |= name == b"content-type" and value == b"application/json"
    return has_token and is_json


async def _messages(receive: Receive) -> list[Message]:
    """The request's body as it comes, or until the client goes away: then it is not complete, and no JSON."""
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages


def _again(messages: Iterable[Message], receive: Receive) -> Receive:
    left = iter(messages)

    async def receive_again() -> Message:
        for message in left:
            return message
        return await receive()

    return receive_again
