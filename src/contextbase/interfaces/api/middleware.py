"""Around every request: trace id, size limit, security headers, metrics and one log line."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from contextvars import Context
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextbase.errors import TooLarge
from contextbase.interfaces.api.authentication import RENEWED_COOKIE
from contextbase.interfaces.api.login_cookie import login_cookie
from contextbase.interfaces.api.metrics import Metrics
from contextbase.interfaces.api.problems import problem_response, unexpected_problem
from contextbase.logs import new_trace_id, trace_id

__all__ = ["NOBODY_THERE", "RequestMiddleware"]

NOBODY_THERE: Final = 499
"""As nginx has it; for the log and the metrics alone."""

_log = logging.getLogger("contextbase.requests")

_TRACEPARENT: Final = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_HEADERS: Final = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; form-action 'none'; base-uri 'none'"),
    (b"cache-control", b"no-store"),
]


class RequestMiddleware:
    """Plain ASGI: it neither buffers bodies nor starts tasks."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, max_request_bytes: int, larger: Mapping[str, int] | None = None
    ) -> None:
        """`larger`: expressions for the paths that take longer bodies, because they stream them, and how long."""
        self._app = app
        self._metrics = metrics
        self._max_request_bytes = max_request_bytes
        self._larger = [(re.compile(path), most) for path, most in (larger or {}).items()]
        self._ended: list[tuple[str, dict[str, object]]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        headers = dict(scope["headers"])
        trace = _TRACEPARENT.fullmatch(headers.get(b"traceparent", b""))
        token = trace_id.set(trace[1].decode() if trace else new_trace_id())
        started, status = time.perf_counter(), 500
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                begun, status = True, message["status"]
                own = dict(message["headers"])
                added = [header for header in _HEADERS if header[0] not in own]
                if (renewed := scope["state"].get(RENEWED_COOKIE)) is not None and b"set-cookie" not in own:
                    added.append((b"set-cookie", login_cookie(renewed, scope["scheme"])))
                message["headers"] = [*message["headers"], *added, (b"x-trace-id", trace_id.get().encode())]
            await send(message)

        try:
            if not _is_text(scope):
                response = problem_response(400, "invalid_input", "The address is not valid UTF-8.")
                await response(scope, receive, send_with_headers)
                return
            most = self._most_bytes(scope["path"])
            if _declared_length(headers) > most:
                response = problem_response(413, "too_large", _too_large_sentence(most))
                await response(scope, receive, send_with_headers)
                return
            await self._app(scope, _limited(receive, most), send_with_headers)
        except ClientDisconnect:
            status = NOBODY_THERE
        except Exception:
            _log.exception("the request failed")
            if begun:
                raise  # half an answer is out: the server must break the connection
            await unexpected_problem()(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "(none)")
            self._metrics.request(scope["method"], route, status, seconds)
            # The path without the query: a query may hold a login token.
            fields = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(seconds * 1000, 1),
            }
            self._log_soon(trace_id.get(), fields)
            trace_id.reset(token)

    def _most_bytes(self, path: str) -> int:
        return next((most for one, most in self._larger if one.fullmatch(path)), self._max_request_bytes)

    def _log_soon(self, trace: str, fields: dict[str, object]) -> None:
        """The requests that end in one turn of the loop, as those of a batch of commits do, are logged together: one
        after the other takes half the time."""
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._log_ended, context=Context())
        self._ended.append((trace, fields))

    def _log_ended(self) -> None:
        ended, self._ended = self._ended, []
        for trace, fields in ended:
            trace_id.set(trace)
            _log.info("request", extra=fields)


def _is_text(scope: Scope) -> bool:
    """Bytes that are not UTF-8 would come out as other characters: the name of another file."""
    address = (scope.get("raw_path") or b"") + b"?" + scope["query_string"]
    if b"%" not in address and address.isascii():
        return True
    try:
        unquote_to_bytes(address).decode()
    except UnicodeDecodeError:
        return False
    return True


def _limited(receive: Receive, most: int) -> Receive:
    received = 0

    async def receive_limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            raise TooLarge(_too_large_sentence(most))
        return message

    return receive_limited


def _too_large_sentence(most: int) -> str:
    return f"The request has more than {most} bytes, the most this server takes at once."


def _declared_length(headers: dict[bytes, bytes]) -> int:
    declared = headers.get(b"content-length", b"0")
    return int(declared) if declared.isdigit() and len(declared) < 20 else 0  # else counted as it comes
