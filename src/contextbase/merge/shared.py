"""What the sides of a merge share: most of nearly every file."""

from collections.abc import Callable
from functools import cached_property

from contextbase.merge.document import Item

__all__ = ["Shared"]


class Shared:
    """What the sides of one merge share, filled while they are read one after the other.

    items: those read already, by their source text. One that stands alike on all sides is one object then, which tells
    at once that it is the same.
    checks_apart: whether a result need not be checked for what is one object on all sides. A reader that says so keeps
    among the items only what is as valid without its neighbours, and they without it.
    """

    def __init__(self, *texts: str) -> None:
        self.items: dict[tuple[str, ...], Item] = {}
        self.checks_apart = False
        self._texts = texts

    @cached_property
    def head(self) -> int:
        """How many characters all sides begin with alike."""
        first, *others = self._texts or ("",)
        return _greatest(lambda size: all(other.startswith(first[:size]) for other in others), self._shortest)

    @cached_property
    def tail(self) -> int:
        """How many characters all sides end with alike, without those they begin with."""
        first, *others = self._texts or ("",)
        return _greatest(
            lambda size: all(other.endswith(first[len(first) - size :]) for other in others), self._shortest - self.head
        )

    @property
    def _shortest(self) -> int:
        return min(map(len, self._texts), default=0)


def _greatest(holds: Callable[[int], bool], most: int) -> int:
    """The greatest size for which it holds, by halving: it takes a fraction of the time of comparing characters."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
