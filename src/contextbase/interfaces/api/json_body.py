"""Routes whose bodies are JSON, whatever the request's content type says: `curl -d` calls every body a form."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

__all__ = ["JsonBodyRoute"]

_AS_FORM: Final = b"application/x-www-form-urlencoded"
_TYPE: Final = b"content-type"


class JsonBodyRoute(APIRoute):
    """Takes a JSON body without a content type, or with that of a form, for JSON. A page of another site can send
    such a request with somebody's cookie; `authenticate` refuses that by its origin."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_as_json(request: Request) -> Response:
            given = request.headers.get("content-type", "").encode().partition(b";")[0].strip().lower()
            if given in (b"", _AS_FORM):
                headers = [header for header in request.scope["headers"] if header[0] != _TYPE]
                headers.append((_TYPE, b"application/json"))
                request = Request({**request.scope, "headers": headers}, request.receive)
            return await handle(request)

        return handle_as_json
