"""Reading what an answer cost, as it passes by. The bytes are never changed, and an odd one costs no answer."""

import json
from dataclasses import replace
from typing import Any, Final

from contextbase.models.model import Dialect, TokenCounts

__all__ = ["UsageMeter"]

_MOST_KEPT: Final = 32 * 1024 * 1024
# Of a stream that broke off before its usage came: about so many of its bytes stand for a token.
_STREAMED_BYTES_PER_TOKEN: Final = 40
_FINAL_RESPONSES: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


class UsageMeter:
    def __init__(self, dialect: Dialect, *, is_stream: bool, request_bytes: int) -> None:
        self._dialect = dialect
        self._is_stream = is_stream
        self._request_bytes = request_bytes
        self._rest = b""
        self._seen = 0
        self._counts: dict[str, int] = {}
        self._is_final = False
        self.has_begun = False

    def feed(self, piece: bytes) -> None:
        self.has_begun = True
        self._seen += len(piece)
        if len(self._rest) + len(piece) > _MOST_KEPT:
            self._rest = b""  # it is then estimated
            return
        self._rest += piece
        if not self._is_stream or b"\n" not in piece:
            return
        whole, _, self._rest = self._rest.rpartition(b"\n")
        if b'"usage"' in whole:
            for line in whole.split(b"\n"):
                if line.startswith(b"data:") and b'"usage"' in line:
                    self._read(line[5:])

    def counts(self) -> TokenCounts:
        """When the answer has ended, or broken off."""
        if not self._is_stream and self._rest:
            self._read(self._rest)
        if self._is_final:
            return _counts(self._counts)
        guess = {"input": self._request_bytes // 4} | self._counts
        guess["output"] = max(guess.get("output", 0), self._seen // _STREAMED_BYTES_PER_TOKEN)
        return replace(_counts(guess), is_estimate=True)

    def _read(self, text: bytes) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            self._take(document)

    def _take(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        holder: object = document
        if kind == "message_start":
            holder, is_final = document.get("message"), False
        elif self._dialect is Dialect.RESPONSES and kind is not None:
            holder, is_final = document.get("response"), kind in _FINAL_RESPONSES
        else:
            is_final = True
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            self._counts |= _of_anthropic(usage) if self._dialect is Dialect.MESSAGES else _of_openai(usage)
            self._is_final = self._is_final or is_final


def _of_anthropic(usage: dict[str, Any]) -> dict[str, int]:
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "cache_read": "cache_read_input_tokens",
        "cache_write": "cache_creation_input_tokens",
    }
    return {ours: _number(usage[theirs]) for ours, theirs in names.items() if usage.get(theirs) is not None}


def _of_openai(usage: dict[str, Any]) -> dict[str, int]:
    """Both ways of writing it; cached tokens are a part of the input there."""
    details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
    cached = _number(details.get("cached_tokens")) if isinstance(details, dict) else 0
    whole = _number(usage.get("input_tokens", usage.get("prompt_tokens")))
    output = _number(usage.get("output_tokens", usage.get("completion_tokens")))
    return {"input": max(0, whole - cached), "output": output, "cache_read": cached}


def _counts(found: dict[str, int]) -> TokenCounts:
    return TokenCounts(
        input=found.get("input", 0),
        output=found.get("output", 0),
        cache_read=found.get("cache_read", 0),
        cache_write=found.get("cache_write", 0),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40 else 0
