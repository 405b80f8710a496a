"""What the people of a place tell agents: a file at its top, and its skills. It is text, never configuration."""

from pathlib import Path
from typing import Final

from contextbase.agents.place_files import read_text
from contextbase.agents.skills import place_skills

__all__ = ["place_instructions"]

_NAMES: Final = ("AGENTS.md", "CLAUDE.md")
_LONGEST: Final = 48 << 10  # bytes; it is an argument of a program


def place_instructions(workspace: Path) -> str | None:
    """Of the first file that is there, and the list of skills; None: there is neither."""
    parts = []
    for name in _NAMES:
        if text := read_text(workspace / name, _LONGEST):
            parts.append(f"Instructions of this place ({name}):\n\n{text}")
            break
    if skills := place_skills(workspace):
        parts.append(skills)
    return "\n\n".join(parts) or None
