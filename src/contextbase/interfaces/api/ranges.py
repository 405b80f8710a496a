"""The Range header, as far as we take it: one range of bytes."""

import re
from typing import Final

__all__ = ["Unsatisfiable", "requested_range"]

_ONE_RANGE: Final = re.compile(r"bytes\s*=\s*(\d{0,18})-(\d{0,18})\s*", re.IGNORECASE | re.ASCII)


class Unsatisfiable(Exception):
    """The content has nothing in that range."""


def requested_range(header: str | None, size: int) -> tuple[int, int] | None:
    """(start, end), end not included; None: the whole, also for what RFC 9110 lets a server pass over (several
    ranges, other units, a range that ends before it starts)."""
    match = _ONE_RANGE.fullmatch(header or "")
    if match is None or (not match[1] and not match[2]):
        return None
    if not match[1]:
        last = int(match[2])
        if not last or not size:
            raise Unsatisfiable
        return max(0, size - last), size
    start = int(match[1])
    end = int(match[2]) + 1 if match[2] else size
    if match[2] and end <= start:
        return None
    if start >= size:
        raise Unsatisfiable
    return start, min(end, size)
