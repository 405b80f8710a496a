"""Text as lines. Only `\\n` ends one: what else `str.splitlines` cuts at is part of a value to YAML or Markdown."""

import re
from typing import Final

__all__ = ["lines_of"]

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def lines_of(text: str) -> list[str]:
    """The lines with their newlines; joined, they are the text."""
    return _LINE.findall(text)
