"""What Codex is told of a place, and what it was told last in a conversation.

It takes instructions when a conversation begins, and again when it shortens one. A conversation that goes on keeps
those it began with: if they have changed since, they are told as one more message, which Codex keeps with the others.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from contextbase.agents.instructions import place_instructions
from contextbase.agents.model import AgentPlace, AgentTurn

__all__ = ["codex_instructions", "instructions_message", "last_instructions"]

_BEGIN, _END = "<place_instructions>\n", "\n</place_instructions>"
_NONE: Final = "There are no instructions any more."


def codex_instructions(turn: AgentTurn, place: AgentPlace) -> str | None:
    text = "\n\n".join(filter(None, (turn.system_prompt, place_instructions(place.workspace))))
    return f"{_BEGIN}{text}{_END}" if text else None


def instructions_message(instructions: str | None, last: str | None) -> dict[str, Any] | None:
    """What a conversation has to be told that was told `last`; None: it knows."""
    wanted = instructions or (f"{_BEGIN}{_NONE}{_END}" if last else None)
    if wanted is None or wanted == last:
        return None
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": wanted}]}


def last_instructions(memory: Path, conversation: str) -> str | None:
    """What the conversation was told last, from the file that Codex keeps about it; None: nothing, as far as that
    says."""
    last = None
    for path in memory.glob("sessions/**/*.jsonl"):
        if path.stem.endswith(conversation) and path.is_file():
            with path.open("rb") as lines:
                for line in lines:
                    if _BEGIN[:-1].encode() in line:
                        last = next(reversed([*_told(line)]), last)
    return last


def _told(line: bytes) -> Iterator[str]:
    """By a message, or by the messages that stand in the place of a conversation that was shortened."""
    try:
        payload = json.loads(line)["payload"]
        for item in payload.get("replacement_history") or [payload]:
            if item.get("role") == "developer":
                yield from (part["text"] for part in item["content"] if str(part.get("text")).startswith(_BEGIN))
    except (ValueError, TypeError, KeyError, AttributeError):
        return  # a line that was cut off, or that another version writes otherwise: it is told again
