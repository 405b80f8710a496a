"""The first line each side sends, before any frame: the protocol versions it speaks, and something about itself."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from contextbase.channel.errors import ChannelClosed, ProtocolViolation

__all__ = ["VERSIONS", "Greeting", "common_version", "received_greeting"]

VERSIONS: Final = (1,)
"""What this build speaks, newest first: the newest version and the one before it."""

_NAME: Final = "contextbase-channel"
_LONGEST: Final = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Greeting:
    versions: tuple[int, ...] = VERSIONS
    about: Mapping[str, Any] = field(default_factory=dict)

    def encoded(self) -> bytes:
        line = json.dumps({"protocol": _NAME, "versions": self.versions, "about": dict(self.about)}).encode() + b"\n"
        if len(line) > _LONGEST:
            raise ValueError(f"A greeting has {_LONGEST} bytes at the most.")
        return line


async def received_greeting(receive: Callable[[], Awaitable[bytes]]) -> tuple[Greeting, bytes]:
    """The other side's, and the first bytes of its frames, if some came with it."""
    line = b""
    while b"\n" not in line:
        if len(line) > _LONGEST:
            raise ProtocolViolation("The greeting is too long.")
        piece = await receive()
        if not piece:
            raise ChannelClosed("The other side went away before it greeted.")
        line += piece
    line, _, rest = line.partition(b"\n")
    if len(line) > _LONGEST:
        raise ProtocolViolation("The greeting is too long.")
    return _parsed(line), rest


def common_version(ours: Greeting, theirs: Greeting) -> int:
    """The newest that both speak."""
    both = set(ours.versions) & set(theirs.versions)
    if not both:
        raise ProtocolViolation(f"One side speaks the versions {ours.versions}, the other one {theirs.versions}.")
    return max(both)


def _parsed(line: bytes) -> Greeting:
    try:
        values = json.loads(line)
        versions = tuple(values["versions"])
        about = values["about"]
        is_ours = values["protocol"] == _NAME and isinstance(about, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        is_ours = False
        versions, about = (), {}
    if not is_ours or not all(type(version) is int for version in versions):
        raise ProtocolViolation("The other side does not greet as a contextbase channel does.")
    return Greeting(versions=versions, about=about)
