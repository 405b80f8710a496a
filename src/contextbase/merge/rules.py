"""The rules that settle contested lines of any text: few, and right nine times out of ten."""

import re
from typing import Final

from contextbase.merge.model import Sides
from contextbase.merge.versions import higher

__all__ = ["settle_lines", "settle_versions"]

_VERSION: Final = re.compile(rb"\d\.\d+\.\d")  # in a text that may be code, 3 and 0.5 are just numbers


def settle_lines(sides: Sides) -> bytes | None:
    """One side's lines, where a rule says that they are meant: the higher of two raised versions, or the insertion
    that has the other side's in it. None where no rule applies."""
    base, ours, theirs = sides
    if not base:
        longer, shorter = (ours, theirs) if len(ours) >= len(theirs) else (theirs, ours)
        return longer if _has_lines(longer, shorter) else None
    if not all(map(_VERSION.search, sides)):
        return None
    try:
        chosen = higher(base.decode(), ours.decode(), theirs.decode())
    except UnicodeDecodeError:
        return None
    return None if chosen is None else chosen.encode()


def settle_versions(sides: Sides) -> bytes | None:
    """Lines of prose that differ in versions alone, which both sides raised: each with the higher one. None where
    anything else differs, and for headings and rows of tables, which go by their text."""
    lines = [side.splitlines(keepends=True) for side in sides]
    if not len(lines[0]) == len(lines[1]) == len(lines[2]):
        return None
    settled: list[bytes] = []
    for base, ours, theirs in zip(*lines, strict=True):
        if base == ours == theirs:
            settled.append(ours)
            continue
        if base in (ours, theirs) or b"|" in base or base.lstrip().startswith(b"#"):
            return None
        try:
            chosen = higher(base.decode(), ours.decode(), theirs.decode())
        except UnicodeDecodeError:
            return None
        if chosen is None:
            return None
        settled.append(chosen.encode())
    return b"".join(settled)


def _has_lines(longer: bytes, shorter: bytes) -> bool:
    """Whether the lines of one stand in the other, side by side and in order; lines both begin or end with are agreed
    text already, so that nothing may be left of the shorter one."""
    return not shorter or (b"\n" + shorter.rstrip(b"\n") + b"\n") in (b"\n" + longer.rstrip(b"\n") + b"\n")
