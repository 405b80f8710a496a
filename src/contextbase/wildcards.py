"""Patterns of paths as regular expressions: `*` within a part of a path, `?` one character of it, `**` across parts.

Whoever may write may choose a pattern (of a lease) and a path, so that matching must take little time for any two of
them. The expressions never try again what cannot come out better: where text between two `*` fits first it fits best,
and likewise what stands between two `**`. That is what the atomic groups say.
"""

import re
from typing import Final

__all__ = ["expression_of"]

# `**/` is also no folder at all, if it is a whole part: `a/**/b` is about `a/b`, too.
_WILD: Final = re.compile(r"((?<![^/])\*\*/|\*\*|\*|\?)")
_DEEP: Final = {"": "", "**/": "(?:.*/)?", "**": ".*"}
_FIRST: Final = {"": "", "**/": "(?:.*?/)??", "**": ".*?"}  # likewise, no further than it must


def expression_of(pattern: str) -> str:
    """For `fullmatch`, with DOTALL; more may be put after it."""
    deep, between = [""], [[""]]  # what each stretch begins with, and what stands between its stars
    for piece in _WILD.split(pattern):
        if piece in ("**/", "**"):
            deep.append(piece)
            between.append([""])
        elif piece == "*":
            between[-1].append("")
        else:
            between[-1][-1] += "[^/]" if piece == "?" else re.escape(piece)
    *stretches, last = zip(deep, between, strict=True)
    before = "".join(f"(?>{_FIRST[begin]}{first}{_firsts(others)})" for begin, (first, *others) in stretches)
    begin, (first, *others) = last
    end = f"{_firsts(others[:-1])}[^/]*{others[-1]}" if others else ""  # the last star reaches as far as it must
    return f"{before}{_DEEP[begin]}{first}{end}"


def _firsts(texts: list[str]) -> str:
    """Each where it comes first after the one before, within a part."""
    return "".join(f"(?>[^/]*?{text})" for text in texts)
