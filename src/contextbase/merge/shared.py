"""What the sides of a merge share: most of nearly every file."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, AnyStr, TypeVar

from contextbase.merge.document import GroupItem

__all__ = ["Shared", "alike"]


Found = TypeVar("Found")


class Shared:
    """What the sides of one merge share, filled while they are read one after the other.

    items: those read already, by their source text. One that stands alike on all sides is one object then, which tells
    at once that it is the same.
    followers: by the source text of an item, that of the one below it, and what it was read as. On another side most
    likely the same one follows.
    checks_apart: whether a result may be checked in short. A reader that says so keeps among the items only what is as
    valid without its neighbours, and they without it.
    found_in_head: what a reader need not look for again in what all sides begin with.
    """

    def __init__(self, *texts: str) -> None:
        self.items: dict[str | tuple[str, ...], GroupItem] = {}
        self.followers: dict[str, tuple[str, GroupItem]] = {}
        self.checks_apart = False
        self.found_in_head: list[Any] = []
        self.texts = texts
        self._found: dict[str, Any] = {}

    def once(self, name: str, find: Callable[[], Found]) -> Found:
        """What a reader finds in all sides together, found when the first of them is read."""
        if name not in self._found:
            self._found[name] = find()
        found: Found = self._found[name]
        return found

    @property
    def head(self) -> int:
        """How many characters all sides begin with alike."""
        return self._alike[0]

    @property
    def tail(self) -> int:
        """How many characters all sides end with alike, without those they begin with."""
        return self._alike[1]

    @cached_property
    def _alike(self) -> tuple[int, int]:
        return alike(*self.texts) if self.texts else (0, 0)


def alike(first: AnyStr, *others: AnyStr) -> tuple[int, int]:
    """How much all begin with alike, and how much of the rest they end with alike."""
    shortest = min(len(first), *map(len, others))
    head = _common_head(first, others, shortest)
    return head, _common_tail(first, others, shortest - head)


def _common_head(first: AnyStr, others: tuple[AnyStr, ...], most: int) -> int:
    """By halving: it takes a fraction of the time of a loop."""
    low, high = 0, most + 1  # alike up to low, not up to high
    while high - low > 1:
        middle = (low + high) // 2
        part = first[low:middle]
        for other in others:
            if not other.startswith(part, low):
                high = middle
                break
        else:
            low = middle
    return low


def _common_tail(first: AnyStr, others: tuple[AnyStr, ...], most: int) -> int:
    low, high = 0, most + 1
    length = len(first)
    while high - low > 1:
        middle = (low + high) // 2
        part = first[length - middle : length - low]
        for other in others:
            if not other.endswith(part, 0, len(other) - low):
                high = middle
                break
        else:
            low = middle
    return low
