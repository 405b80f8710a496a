"""Calls of the server: a method and a path in, a line with the status and a body out."""

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from contextbase.channel.errors import ProtocolViolation
from contextbase.channel.stream import ChannelStream

__all__ = ["CallAnswer", "CallRefused", "Calls", "ExecutorCall"]

_log = logging.getLogger(__name__)

_LONGEST_BODY: Final = 8 << 20


class CallRefused(Exception):
    """With a status as of HTTP, a code and a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorCall:
    query: Mapping[str, str]
    names: Mapping[str, str]  # what stands in the path's places
    stream: ChannelStream  # its body

    async def json(self) -> dict[str, Any]:
        try:
            value = json.loads(await self.stream.read_all(_LONGEST_BODY) or b"{}")
        except ProtocolViolation:
            raise CallRefused(413, "too_large", f"A body has {_LONGEST_BODY} bytes at the most.") from None
        except (ValueError, RecursionError):
            raise CallRefused(400, "invalid_input", "The body is not JSON.") from None
        if not isinstance(value, dict):
            raise CallRefused(400, "invalid_input", "The body is not a JSON object.")
        return value

    def number(self, name: str, default: int) -> int:
        text = self.query.get(name, str(default))
        if not text.isdecimal() or len(text) > 18:
            raise CallRefused(400, "invalid_input", f"{name} is a number, not {text[:50]!r}.")
        return int(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallAnswer:
    status: int = 200
    values: Mapping[str, Any] | None = None  # the body, as JSON
    pieces: AsyncIterator[bytes] | None = None  # or the body, as it comes
    head: Mapping[str, Any] = field(default_factory=dict)  # more for the first line


CallHandler = Callable[[ExecutorCall], Awaitable[CallAnswer]]


class Calls:
    """A path's part in braces stands for any one name."""

    def __init__(self, handlers: Mapping[tuple[str, str], CallHandler]) -> None:
        self._handlers = {(method, tuple(path.split("/"))): each for (method, path), each in handlers.items()}

    async def serve(self, stream: ChannelStream) -> None:
        try:
            answer = await self._answer(stream)
        except CallRefused as refusal:
            problem = {"code": refusal.code, "message": str(refusal)}
            answer = CallAnswer(status=refusal.status, values=problem)
        head = {"status": answer.status, **answer.head}
        await stream.write(json.dumps(head).encode() + b"\n")
        if answer.values is not None:
            await stream.write(json.dumps(answer.values).encode())
        elif answer.pieces is not None:
            with contextlib.suppress(GeneratorExit):
                async for piece in answer.pieces:
                    await stream.write(piece)

    async def _answer(self, stream: ChannelStream) -> CallAnswer:
        method, target = str(stream.about.get("method")), urlsplit(str(stream.about.get("path")))
        query = {name: values[-1] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
        asked = tuple(target.path.split("/"))
        for (each, pattern), handler in self._handlers.items():
            names = _matched(pattern, asked)
            if each == method and names is not None:
                call = ExecutorCall(query=query, names=names, stream=stream)
                try:
                    return await handler(call)
                except OSError as error:
                    if stream.is_cut:
                        raise
                    raise CallRefused(409, "conflict", str(error)) from None
        raise CallRefused(404, "not_found", f"There is no {method} {target.path[:200]}.")


def _matched(pattern: tuple[str, ...], asked: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(asked):
        return None
    names = {}
    for one, other in zip(pattern, asked, strict=True):
        if one.startswith("{"):
            names[one.strip("{}")] = other
        elif one != other:
            return None
    return names
