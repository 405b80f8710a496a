"""What becomes of a version, or of a requirement such as `^1.2 || ^2.0`, that both sides changed."""

import re
from typing import Final

from contextbase.merge.versions import VersionNumber, find_versions, higher, substantial

__all__ = ["settle_requirement"]

_MAX_LENGTH: Final = 400  # a longer value is prose
_DIGIT: Final = re.compile(r"\d")
_OPERATORS: Final = re.compile(r"(?:[\s\"'^~<>=!|,()]|@[a-z]+)*")  # all that stands around the versions; `@dev` too
_UPPER_BOUND: Final = re.compile(r"[\s\"']*[<!]")


def settle_requirement(base: str | None, ours: str, theirs: str) -> str | None:
    """The value that both sides' changes come to, or None where no rule says.

    The higher of two versions; of two requirements the one that asks for more; words in the place of a version that the
    other side only raised.
    """
    if max(len(base or ""), len(ours), len(theirs)) > _MAX_LENGTH or not _DIGIT.search(ours + theirs):
        return None
    settled = higher(base, ours, theirs)
    if settled is None:
        settled = _stricter(base, ours, theirs)
    return substantial(base, ours, theirs) if settled is None and base is not None else settled


def _quote(text: str) -> str:
    """What it stands in: `"3.10"` and `3.10` are not the same kind of value."""
    return text[0] if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] else ""


def _stricter(base: str | None, ours: str, theirs: str) -> str | None:
    """The requirement whose lowest and highest versions are both at least as high as the other's, if neither side
    lowered one of base's."""
    mine, other = _bounds(ours), _bounds(theirs)
    if mine is None or other is None or mine == other or _quote(ours) != _quote(theirs):
        return None
    if base is not None:
        was = find_versions(base).versions
        if not was or any(version.is_placeholder for version in was):
            return None
        if min(mine[0], other[0]) < min(was) or min(mine[1], other[1]) < max(was):
            return None
    if mine[0] >= other[0] and mine[1] >= other[1]:
        return ours
    return theirs if other[0] >= mine[0] and other[1] >= mine[1] else None


def _bounds(requirement: str) -> tuple[VersionNumber, VersionNumber] | None:
    """The lowest and the highest version of a text that is nothing but a requirement, and not just an upper bound."""
    around, versions = find_versions(requirement)
    if not versions or _UPPER_BOUND.match(requirement) or not all(map(_OPERATORS.fullmatch, around)):
        return None
    return None if any(version.is_placeholder for version in versions) else (min(versions), max(versions))
