"""What both sides agree on: the header, what a signature is for, and which headers travel."""

import re
from collections.abc import Iterable
from typing import Final

from starlette.types import Scope

from contextbase.logs import trace_id

__all__ = ["CALLER_HEADER", "LONGEST_SIGNED_BODY", "answer_headers", "sent_headers", "target_of"]

CALLER_HEADER: Final = "x-contextbase-caller"
LONGEST_SIGNED_BODY: Final = 1 << 20
"""Longer bodies are streamed, and not covered by the signature."""

# Of one connection, or about who called: the signature says that.
_NOT_SENT: Final = re.compile(
    rb"connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|host|authorization|cookie|traceparent|"
    rb"sec-websocket-.*|x-forwarded-.*|" + CALLER_HEADER.encode()
)
# The server that answers the client writes its own.
_NOT_ANSWERED: Final = re.compile(
    rb"connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|date|x-trace-id"
)

Headers = list[tuple[bytes, bytes]]


def target_of(scope: Scope) -> str:
    """Path and query as they came."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (raw + b"?" + query if query else raw).decode("latin-1")


def sent_headers(scope: Scope, signed: str) -> Headers:
    kept = [(name, value) for name, value in scope["headers"] if not _NOT_SENT.fullmatch(name)]
    trace = trace_id.get()
    if len(trace) == 32:
        kept.append((b"traceparent", f"00-{trace}-{trace[:16]}-01".encode()))
    return [*kept, (CALLER_HEADER.encode(), signed.encode())]


def answer_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.lower(), value) for name, value in headers if not _NOT_ANSWERED.fullmatch(name.lower())]
