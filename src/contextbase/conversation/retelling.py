"""A conversation told as text, for an agent program that does not know it. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from contextbase.conversation.model import AgentMessage, ToolExecution
from contextbase.vocabulary import MessageRole

__all__ = ["retold"]

_LONGEST: Final = 64 * 1024  # characters; the newest of it
_LONGEST_MESSAGE: Final = 16 * 1024
_LONGEST_TITLE: Final = 200
_LEFT_OUT: Final = "(What was said before this is left out.)"


def retold(messages: Sequence[AgentMessage], tools: Iterable[ToolExecution], *, longest: int = _LONGEST) -> str:
    """What people and agents said and which tools were used, run by run as the messages have them; the beginning is
    left out if it is too long. Empty when nothing was said."""
    runs = list(dict.fromkeys(message.run_id for message in messages))
    rows: list[AgentMessage | ToolExecution] = [*messages, *(tool for tool in tools if tool.run_id in runs)]
    lines = list(_lines(sorted(rows, key=lambda row: (runs.index(row.run_id), row.position))))
    kept: list[str] = []
    left = longest
    for line in reversed(lines):
        left -= len(line) + 2
        if left < 0:
            kept.append(_LEFT_OUT)
            break
        kept.append(line)
    return "\n\n".join(reversed(kept))


def _lines(rows: Sequence[AgentMessage | ToolExecution]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, ToolExecution):
            yield f"[{row.name}: {row.title[:_LONGEST_TITLE]} ({row.status})]"
        elif row.text:
            who = "Person" if row.role is MessageRole.USER else "Agent"
            text = row.text if len(row.text) <= _LONGEST_MESSAGE else f"{row.text[:_LONGEST_MESSAGE]} …"
            yield f"{who}: {text}"
