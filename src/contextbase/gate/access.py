"""Which changes a writer may make at all, before the head is looked at."""

from collections.abc import Callable
from dataclasses import dataclass

from contextbase.gate.model import Change, ChangeAction
from contextbase.gate.working_tree import Live
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import TreePath

__all__ = ["Refusal", "free_name", "refusal_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    code: str
    reason: str


def refusal_of(change: Change, base: Live | None, authority: PathAuthority) -> Refusal | None:
    """Why the change may not be made, or None. Says the same of a hidden path whether or not it exists."""
    level = authority.level(change.path)
    if level is Level.HIDDEN:
        return _refusal(change.path, "there is nothing there that you may change")
    if level is Level.READ:
        return _refusal(change.path, "you may only read there (R)")
    if change.action in (ChangeAction.DELETE, ChangeAction.RENAME) and level is not Level.READ_WRITE:
        return _refusal(change.path, f"you may not delete or rename there ({level})")
    if change.action is ChangeAction.WRITE and level is Level.READ_ADD and base is not None:
        return _refusal(change.path, "you may add files there, not change them (RA)")
    if change.target is not None:
        target_level = authority.level(change.target)
        if target_level < Level.READ_ADD:
            return _refusal(change.target, "you may not write there")
        if base is None:
            return Refusal(code="not_found", reason=f"There is no {change.path} in the snapshot it was made from.")
    return None


def free_name(path: TreePath, *, taken: Callable[[TreePath], bool], authority: PathAuthority) -> TreePath:
    """`name.ext`, or `name (n).ext` with the first n that is free. Names the writer cannot see are passed over
    whether they exist or not, so that the number tells nothing."""
    if not taken(path):
        return path
    stem, dot, extension = path.name.rpartition(".")
    if not stem:
        stem, dot, extension = path.name, "", ""
    folder = f"{path.parent}/" if path.parent else ""
    number = 1
    while True:
        candidate = TreePath(f"{folder}{stem} ({number}){dot}{extension}")
        if authority.level(candidate) >= Level.READ_ADD and not taken(candidate):
            return candidate
        number += 1


def _refusal(path: TreePath, why: str) -> Refusal:
    return Refusal(code="forbidden", reason=f"{path} was not changed: {why}.")
