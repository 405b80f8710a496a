"""Text files that the people of a place wrote for agents. They are words for the agent, never configuration."""

import os
import re
import stat
from pathlib import Path
from typing import Final

__all__ = ["read_text", "without_front_matter"]

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"^([A-Za-z_-]+):[ \t]*(.*)$", re.MULTILINE)


def read_text(path: Path, longest: int) -> str | None:
    """Its beginning, up to so many bytes; None if there is no such file, or nothing in it. A link is not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = b""
        while len(content) < longest and (piece := os.read(descriptor, longest - len(content))):
            content += piece
    finally:
        os.close(descriptor)
    return content.decode(errors="replace").replace("\0", "").strip() or None


def without_front_matter(text: str) -> tuple[str, dict[str, str]]:
    """The text, and the plain fields that stand before it between lines of dashes."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return text, {}
    fields = {name.lower(): value.strip().strip("\"'") for name, value in _FIELD.findall(found.group(1))}
    return text[found.end() :].strip(), fields
