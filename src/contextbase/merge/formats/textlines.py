"""Text as lines. Only `\\n` ends one: what else `str.splitlines` cuts at is part of a value to YAML or Markdown."""

from io import StringIO

__all__ = ["lines_of"]


def lines_of(text: str) -> list[str]:
    """The lines with their newlines; joined, they are the text."""
    return StringIO(text, newline="\n").readlines()
