"""What the three dialects share: an answer to write, server-sent events, pieces of text."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from contextbase.models.scripted.script import AnswerText, BreakOff, Pause
from contextbase.models.scripted.tool_calls import OfferedCall

__all__ = ["Rendered", "ResolvedPart", "ScriptedAnswer", "event", "text_pieces"]

_PIECE: Final = 24  # characters

ResolvedPart = AnswerText | OfferedCall | Pause | BreakOff
Rendered = bytes | Pause | BreakOff


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedAnswer:
    id: str  # a hash of what was asked: the same request gets the same ids
    model: str
    parts: tuple[ResolvedPart, ...]
    input_tokens: int
    output_tokens: int = field(default=0)

    @property
    def calls(self) -> list[OfferedCall]:
        return [part for part in self.parts if isinstance(part, OfferedCall)]


def event(document: dict[str, Any], *, is_named: bool = True) -> bytes:
    name = f"event: {document['type']}\n" if is_named else ""
    return f"{name}data: {json.dumps(document)}\n\n".encode()


def text_pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
