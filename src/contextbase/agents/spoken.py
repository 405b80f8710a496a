"""Events that several translators make in the same way."""

from collections.abc import Iterator
from typing import Any

from contextbase.agents.shortening import shortened

__all__ = ["Event", "SpokenMessages", "tool_end"]

Event = tuple[str, dict[str, Any]]


class SpokenMessages:
    """The one message that the agent says now. Programs name its parts themselves; here they are numbers from 0."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._number = 0
        self._is_open = False
        self._is_cut = False  # it begins again with the next part
        self._parts: dict[str, int] = {}
        self._unfinished: dict[str, tuple[str, str]] = {}  # kind and text
        self._over: set[str] = set()  # parts whose end was told: some programs tell it again, later

    def said(self, part_id: str, kind: str, text: str) -> Iterator[Event]:
        """`kind`: message or reasoning."""
        if text and part_id not in self._over:
            part = self._part(part_id)
            self._unfinished[part_id] = (kind, self._unfinished.get(part_id, (kind, ""))[1] + text)
            yield f"{kind}.delta", {"message_id": self._id, "part": part, "text": text}

    def done(self, part_id: str, kind: str, text: str) -> Iterator[Event]:
        if (text or part_id in self._unfinished) and part_id not in self._over:
            part = self._part(part_id)
            self._unfinished.pop(part_id, None)
            self._over.add(part_id)
            yield f"{kind}.done", {"message_id": self._id, "part": part, "text": text}

    def restarted(self) -> Iterator[Event]:
        """What was said of the message is said again."""
        if self._is_open and not self._is_cut:
            self._is_cut = True
            self._parts.clear()
            self._unfinished.clear()
            self._over.clear()
            yield "message.restarted", {"message_id": self._id}

    def stopped(self) -> Iterator[Event]:
        if self._is_open:
            for part_id, (kind, text) in tuple(self._unfinished.items()):
                yield from self.done(part_id, kind, text)
            self._is_open = self._is_cut = False
            self._parts.clear()
            yield "message.stop", {"message_id": self._id}

    @property
    def _id(self) -> str:
        return f"{self._key}:{self._number}"

    def _part(self, part_id: str) -> int:
        if not self._is_open:
            self._number += 1
            self._is_open = True
        self._is_cut = False
        return self._parts.setdefault(part_id, len(self._parts))


def tool_end(tool_id: str, output: str, *, is_error: bool) -> Event:
    text, is_cut = shortened(output)
    status = "error" if is_error else "ok"
    return "tool.end", {"tool_id": tool_id, "status": status, "output": text, "truncated": is_cut}
