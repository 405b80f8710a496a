"""A suggestion for lines both sides changed: never applied, since half of such guesses are wrong."""

import re
from typing import Final

from contextbase.merge.lines import merge_lines

__all__ = ["suggest"]

_WORD: Final = re.compile(rb"\w+|[^\w\n]|\n")
_MAX_BYTES: Final = 20_000


def suggest(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """What the contested lines might be meant to be: the side that has the other's addition in it, or both sides'
    changes to different words; None when neither fits."""
    if not base:
        longer, shorter = (ours, theirs) if len(ours) > len(theirs) else (theirs, ours)
        return longer if shorter in longer else None
    if max(len(base), len(ours), len(theirs)) > _MAX_BYTES:
        return None
    # One word a line makes a word merge of the line merge; a newline is a word of its own, spelled so as to survive.
    merged = merge_lines(
        *(b"\n".join(_WORD.findall(side)).replace(b"\n\n", b"\n\0") + b"\n" for side in (base, ours, theirs))
    )
    return None if merged is None else _joined(merged)


def _joined(words: bytes) -> bytes:
    return b"".join(b"\n" if word == b"\0" else word for word in words.split(b"\n"))
