"""Which headers pass the gateway. What is not listed stays behind, above all keys and accounts."""

from collections.abc import Iterable
from typing import Final

from contextbase.models.ports import HeaderList

__all__ = ["passed_in", "passed_out"]

_REQUEST: Final = frozenset(
    {b"accept", b"anthropic-beta", b"anthropic-version", b"content-type", b"conversation_id", b"openai-beta"}
    | {b"originator", b"session_id", b"user-agent", b"version", b"x-app"}
)
_REQUEST_PREFIXES: Final = (b"x-stainless-",)
_ANSWER: Final = frozenset(
    {b"cache-control", b"content-encoding", b"content-length", b"content-type", b"openai-processing-ms"}
    | {b"openai-version", b"request-id", b"retry-after", b"retry-after-ms", b"x-request-id", b"x-should-retry"}
)
_ANSWER_PREFIXES: Final = (b"anthropic-ratelimit-", b"x-ratelimit-")


def passed_out(headers: Iterable[tuple[bytes, bytes]]) -> HeaderList:
    """Of a client's request: what the upstream gets."""
    return _kept(headers, _REQUEST, _REQUEST_PREFIXES)


def passed_in(headers: Iterable[tuple[bytes, bytes]]) -> HeaderList:
    """Of an upstream's answer: what the client gets."""
    return _kept(headers, _ANSWER, _ANSWER_PREFIXES)


def _kept(headers: Iterable[tuple[bytes, bytes]], names: frozenset[bytes], prefixes: tuple[bytes, ...]) -> HeaderList:
    lowered = ((name.lower(), value) for name, value in headers)
    return [(name, value) for name, value in lowered if name in names or name.startswith(prefixes)]
