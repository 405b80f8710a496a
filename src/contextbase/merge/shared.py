"""What the sides of a merge share: most of nearly every file."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, AnyStr, TypeVar

from contextbase.merge.document import Item

__all__ = ["Shared", "common_head", "common_tail"]


Found = TypeVar("Found")


class Shared:
    """What the sides of one merge share, filled while they are read one after the other.

    items: those read already, by their source text. One that stands alike on all sides is one object then, which tells
    at once that it is the same.
    checks_apart: whether a result need not be checked for what is one object on all sides. A reader that says so keeps
    among the items only what is as valid without its neighbours, and they without it.
    found_in_head: what a reader need not look for again in what all sides begin with.
    """

    def __init__(self, *texts: str) -> None:
        self.items: dict[str | tuple[str, ...], Item] = {}
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

    @cached_property
    def head(self) -> int:
        """How many characters all sides begin with alike."""
        first, *others = self.texts or ("",)
        length = len(first)
        for other in others:
            length = common_head(first, other, min(length, len(other)))
        return length

    @cached_property
    def tail(self) -> int:
        """How many characters all sides end with alike, without those they begin with."""
        first, *others = self.texts or ("",)
        length = len(first) - self.head
        for other in others:
            length = common_tail(first, other, min(length, len(other) - self.head))
        return length


def common_head(one: AnyStr, other: AnyStr, most: int) -> int:
    """How much both begin with alike, up to `most`. By halving: it takes a fraction of the time of a loop."""
    low, high = 0, most + 1  # alike up to low, not up to high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def common_tail(one: AnyStr, other: AnyStr, most: int) -> int:
    low, high = 0, most + 1
    one_end, other_end = len(one), len(other)
    while high - low > 1:
        middle = (low + high) // 2
        if one[one_end - middle : one_end - low] == other[other_end - middle : other_end - low]:
            low = middle
        else:
            high = middle
    return low
