"""Whether two leases are about the same files. The language is that of path policies (identity/levels.py).

The answer errs on one side: it may say that two patterns overlap which do not, never the reverse. Two names with
wildcards are compared by what stands before the first and after the last of them; after a `**` inside a name, as in
`a**b`, anything goes; a file whose own name has a `*` is taken for a pattern, too.
"""

import re
from functools import lru_cache
from typing import Final

from contextbase.wildcards import expression_of

__all__ = ["overlap"]

_ANY_PARTS: Final = "**"
_WILD: Final = re.compile(r"[*?]")


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """Whether a path could match both; `src/**` is the folder src and all in it."""
    if one == other:
        return True
    left, right = _parts(one), _parts(other)
    # meets[j]: whether what is left of `left` and right[j:] can match the same parts.
    meets = [all(part == _ANY_PARTS for part in right[j:]) for j in range(len(right) + 1)]
    for part in reversed(left):
        below = meets
        meets = [False] * (len(right) + 1)
        for j in range(len(right), -1, -1):
            if part == _ANY_PARTS:
                meets[j] = below[j] or (j < len(right) and meets[j + 1])
            elif j < len(right) and right[j] == _ANY_PARTS:
                meets[j] = meets[j + 1] or below[j]
            else:
                meets[j] = j < len(right) and below[j + 1] and _names_meet(part, right[j])
    return meets[0]


def _parts(pattern: str) -> list[str]:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part != _ANY_PARTS and _ANY_PARTS in part:
            return [*parts, f"{part.partition(_ANY_PARTS)[0]}*", _ANY_PARTS]
        parts.append(part)
    return parts


def _names_meet(one: str, other: str) -> bool:
    if not _WILD.search(other):
        return _expression(one).fullmatch(other) is not None
    if not _WILD.search(one):
        return _expression(other).fullmatch(one) is not None
    starts = _WILD.split(one)[0], _WILD.split(other)[0]
    ends = _WILD.split(one)[-1], _WILD.split(other)[-1]
    shorter_start, longer_start = sorted(starts, key=len)
    shorter_end, longer_end = sorted(ends, key=len)
    return longer_start.startswith(shorter_start) and longer_end.endswith(shorter_end)


def _expression(name: str) -> re.Pattern[str]:
    return re.compile(expression_of(re.sub(r"\*+", "*", name)), re.DOTALL)
