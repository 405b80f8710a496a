"""What of leases a principal may know: nothing of those on paths that are hidden from it (C5). Pure.

A lease on a pattern is about the place before its first wildcard: who sees that place may know of the lease. That two
patterns overlap is known to who sees the deeper of their places: the other's is that one, or a folder above it. Of a
pattern it is shown only what tells of nothing further in, since names in it may be hidden ones.
"""

import re

from contextbase.errors import Forbidden
from contextbase.identity.levels import Level, PathAuthority, place_of
from contextbase.ids import TreePath

__all__ = ["deeper_place", "place", "require_writable", "sees", "sees_both", "shown", "without_names"]


def place(pattern: str) -> TreePath | None:
    """Where it is about; None: the whole tree."""
    found = place_of(pattern)
    return TreePath(found) if found else None


def deeper_place(one: str, other: str) -> TreePath | None:
    """Of two patterns that overlap."""
    return max(place(one), place(other), key=lambda at: len(at or ""))


def sees(authority: PathAuthority, pattern: str) -> bool:
    return sees_both(authority, pattern, pattern)


def sees_both(authority: PathAuthority, one: str, other: str) -> bool:
    """Whether it may know that these patterns overlap."""
    at = deeper_place(one, other)
    return at is None or authority.sees(at)


def shown(authority: PathAuthority, pattern: str) -> str:
    return pattern if authority.sees_everything else without_names(pattern)


def without_names(pattern: str) -> str:
    """The pattern, or a wider one without the names that come after its place."""
    at = place_of(pattern)
    rest = pattern.removeprefix(at).removeprefix("/")
    if not rest or re.fullmatch(r"[*?/]+", rest):
        return pattern
    return f"{at}/**" if at else "**"


def require_writable(authority: PathAuthority, pattern: str) -> None:
    """Raise `Forbidden` unless the caller may write at a path like the pattern; says of a hidden one no more than the
    gate would. (Where else the pattern reaches, the lease binds nobody: see gate/leases.py.)"""
    like_it = TreePath(re.sub(r"[*?]+", "x", pattern))
    if not sees(authority, pattern) or not authority.sees(like_it):
        raise Forbidden(f"{pattern} cannot be reserved: there is nothing there that you may change.")
    if authority.level(like_it) < Level.READ_ADD:
        raise Forbidden(f"{pattern} cannot be reserved: you may only read there (R).")
