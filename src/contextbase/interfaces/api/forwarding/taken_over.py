"""The machine's side: nothing is answered but what a server of the same database has signed."""

from collections.abc import Awaitable
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from contextbase.errors import ContextbaseError, TooLarge, Unauthenticated
from contextbase.interfaces.api.authentication import FORWARDED_CALLER
from contextbase.interfaces.api.forwarding.request_target import CALLER_HEADER, LONGEST_SIGNED_BODY, target_of
from contextbase.interfaces.api.problems import error_response
from contextbase.machines.placement import was_sent_here
from contextbase.machines.signature import SignatureChecker, body_hash

__all__ = ["ForwardedRequests", "from_servers_alone"]

_OPEN: Final = "/healthz"
_FROM_SERVERS: Final = "contextbase.from_servers"


def from_servers_alone(app: ASGIApp) -> ASGIApp:
    """The API for the listener that is there for other servers."""

    async def marked(scope: Scope, receive: Receive, send: Send) -> None:
        scope[_FROM_SERVERS] = True
        await app(scope, receive, send)

    return marked


class ForwardedRequests:
    """Middleware: what comes by that listener needs a signature, and no token will do. Elsewhere no signature is
    looked at."""

    def __init__(self, app: ASGIApp, checker: SignatureChecker) -> None:
        self._app = app
        self._checker = checker

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if _FROM_SERVERS not in scope or scope["path"] == _OPEN:
            return self._app(scope, receive, send)
        return self._answered(scope, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller, wanted_hash = self._checker.caller(
                _signature(scope), method=scope.get("method", "GET"), target=target_of(scope)
            )
            if wanted_hash is not None and scope["type"] == "http":
                receive = await _checked(receive, wanted_hash)
        except ClientDisconnect:
            return
        except ContextbaseError as error:
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).send_denial_response(error_response(error))
            else:
                await error_response(error)(scope, receive, send)
            return
        scope[FORWARDED_CALLER] = caller
        token = was_sent_here.set(True)
        try:
            await self._app(scope, receive, send)
        finally:
            was_sent_here.reset(token)


def _signature(scope: Scope) -> str:
    found = [value for name, value in scope["headers"] if name == CALLER_HEADER.encode()]
    if len(found) != 1:
        raise Unauthenticated(
            "This address is for the servers of this database alone; send requests to one of them, with a token."
        )
    text: str = found[0].decode("latin-1")
    return text


async def _checked(receive: Receive, wanted: str) -> Receive:
    """The body again, once all of it is here and is what was signed."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LONGEST_SIGNED_BODY:
            raise TooLarge(f"A signed body has {LONGEST_SIGNED_BODY} bytes at the most.")
    if body_hash(bytes(body)) != wanted:
        raise Unauthenticated("The body is not the one that was signed.")
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def receive_again() -> Message:
        return whole.pop() if whole else await receive()

    return receive_again
