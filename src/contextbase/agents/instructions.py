"""What the people of a place tell agents, in a file at its top. It is text for the agent, never configuration."""

import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["place_instructions"]

_NAMES: Final = ("AGENTS.md", "CLAUDE.md")
_LONGEST: Final = 48 << 10  # bytes; it is an argument of a program


def place_instructions(workspace: Path) -> str | None:
    """Of the first file that is there. Links are not followed."""
    for name in _NAMES:
        try:
            descriptor = os.open(workspace / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                text = file.read(_LONGEST).decode(errors="replace").replace("\0", "").strip()
                if text:
                    return f"Instructions of this place ({name}):\n\n{text}"
    return None
