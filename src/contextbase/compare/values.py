"""A structured file as a tree of values that know how they were written."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Data", "Node", "Parts", "Step", "Value", "pointer"]

Data = Any
"""What a file says: dicts, lists and scalars. A string is a str; any other scalar is True, False, None or the bytes of
its spelling, so that no number is rounded, none equals `true`, and dates need no type of their own."""

Step = str | int
"""A key, or a position in a list."""


class Value(NamedTuple):
    text: str  # as written in the file
    data: Data


class Node(NamedTuple):
    """A value that is taken apart only where the sides differ."""

    text: str
    data: Data
    unfold: "Callable[[], Parts] | None" = None  # None: a scalar

    @property
    def value(self) -> Value:
        return Value(self.text, self.data)


Parts = dict[str, Node] | list[Node]


def pointer(path: Sequence[Step]) -> str:
    """The JSON pointer (RFC 6901) to a place."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
