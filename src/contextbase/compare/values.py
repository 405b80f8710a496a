"""A structured file as a tree of values that know how they were written."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Data", "Parts", "Step", "Value", "ValueNode", "list_node", "mapping_node", "pointer"]

Data = Any
"""What a file says: dicts, lists and scalars. A string is a str; any other scalar is True, False, None or the bytes of
its spelling, so that no number is rounded, none equals `true`, and dates need no type of their own."""

Step = str | int
"""A key, or a position in a list."""


class Value(NamedTuple):
    text: str  # as written in the file
    data: Data


class ValueNode(NamedTuple):
    """A value that is taken apart only where the sides differ. Its text is cut out of the file when it is shown: values
    in values would hold the same text many times over."""

    write: Callable[[], str]
    data: Data
    unfold: "Callable[[], Parts] | None" = None  # None: a scalar

    @property
    def value(self) -> Value:
        return Value(self.write(), self.data)


def list_node(write: Callable[[], str], elements: list[ValueNode]) -> ValueNode:
    return ValueNode(write, [element.data for element in elements], lambda: elements)


def mapping_node(write: Callable[[], str], members: dict[str, ValueNode]) -> ValueNode:
    return ValueNode(write, {key: member.data for key, member in members.items()}, lambda: members)


Parts = dict[str, ValueNode] | list[ValueNode]


def pointer(path: Sequence[Step]) -> str:
    """The JSON pointer (RFC 6901) to a place."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
