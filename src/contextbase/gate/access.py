"""Which changes a writer may make at all, before the head is looked at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from contextbase.errors import InvalidPath
from contextbase.gate.model import ChangeAction, RequestedChange
from contextbase.gate.working_tree import Live
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import TreePath
from contextbase.storage.model import Kind

__all__ = ["ChangeRefusal", "free_name", "refusal_of"]

_MOST_NUMBERED: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeRefusal:
    code: str
    reason: str


def refusal_of(
    change: RequestedChange, base: Live | None, level: Level, authority: PathAuthority
) -> ChangeRefusal | None:
    """Why the change may not be made by who has this level on its path, or None. Says the same of a hidden path whether
    or not it exists."""
    if level is Level.HIDDEN:
        return _refusal(change.path, "there is nothing there that you may change")
    if level is Level.READ:
        return _refusal(change.path, "you may only read there (R)")
    if change.action in (ChangeAction.DELETE, ChangeAction.RENAME) and level is not Level.READ_WRITE:
        return _refusal(change.path, f"you may not delete or rename there ({level})")
    remakes = change.action is ChangeAction.MAKE_DIRECTORY and base is not None and base.kind is Kind.DIRECTORY
    if level is Level.READ_ADD and base is not None and not remakes:
        return _refusal(change.path, "you may add files there, not change them (RA)")
    adds = change.action in (ChangeAction.WRITE, ChangeAction.MAKE_DIRECTORY) and base is None
    if adds and authority.hides_above(change.path):
        return _refusal(change.path, "you may make no folder there")
    makes_file = change.action is ChangeAction.WRITE and (base is None or base.kind is Kind.DIRECTORY)
    if makes_file and authority.hides_below(change.path):
        return _refusal(change.path, "you may put no file in the place of that folder")
    if change.target is not None:
        if authority.hides_below(change.target):
            return _refusal(change.target, "you may put nothing in the place of that folder")
        if authority.hides_above(change.target):
            return _refusal(change.target, "you may make no folder there")
        target_level = authority.level(change.target)
        if target_level < Level.READ_ADD:
            return _refusal(change.target, "you may not write there")
        if base is None:
            return ChangeRefusal(
                code="not_found", reason=f"There is no {change.path} in the snapshot it was made from."
            )
    return None


def free_name(path: TreePath, *, taken: Callable[[TreePath], bool], authority: PathAuthority) -> TreePath | None:
    """`name.ext`, or `name (n).ext` with the first n that is free; None if the writer may add no such name. Names it
    may not add are passed over whether they exist or not, so that the number tells nothing."""
    if not taken(path):
        return path
    stem, dot, extension = path.name.rpartition(".")
    if not stem:
        stem, dot, extension = path.name, "", ""
    folder = f"{path.parent}/" if path.parent else ""
    for number in range(1, _MOST_NUMBERED + 1):
        try:
            candidate = TreePath(f"{folder}{stem} ({number}){dot}{extension}")
        except InvalidPath:
            return None  # with a number it is too long
        may_add = authority.level(candidate) >= Level.READ_ADD and not authority.hides_below(candidate)
        if may_add and not taken(candidate):
            return candidate
    return None


def _refusal(path: TreePath, why: str) -> ChangeRefusal:
    return ChangeRefusal(code="forbidden", reason=f"{path} was not changed: {why}.")
