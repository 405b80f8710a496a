"""A file as an ordered tree that, concatenated, gives back exactly its source text.

A format's `parse` builds the tree, `threeway` merges three of them, `render` makes text of the result. Text handed to a
format has no byte-order mark, `\\n` for every line end (a lone side with mixed ends keeps its `\\r`s as plain text) and
ends with `\\n` unless it is empty; the engine takes these off before and puts them back after. So a line-based format
may take items for runs of whole lines.

Nodes are named tuples: a merge makes thousands, and they cost a third of a frozen dataclass.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, NamedTuple

__all__ = ["EMPTY", "Body", "Contested", "Folded", "Group", "Item", "Leaf", "Side", "items_of", "render"]

Side = Literal["base", "ours", "theirs"]


class Leaf(NamedTuple):
    """Source text that is not taken apart. `value` is what equality means: the parsed scalar, or normalised text."""

    text: str
    value: Hashable


class Item(NamedTuple):
    """One member of a group, in source order: lead + head + body + gap + [separator] + trail.

    lead: blank lines and comments that belong to it; head: its key as written, up to the value; gap: what stands
    between value and separator; trail: what follows on the same line (an end-of-line comment, the newline of a
    line-based format).
    """

    key: Hashable  # its identity among its siblings; None in a group that is aligned by value
    body: "Body"
    lead: str = ""
    head: str = ""
    gap: str = ""
    trail: str = ""
    identities: tuple[tuple[str, Hashable], ...] = ()  # possible keys of a list element: ("id", 7), ("name", "x")

    @property
    def text(self) -> str:
        return f"{self.lead}{self.head}{self.body.text}{self.gap}{self.trail}"


class Contested(NamedTuple):
    """A place of a merged group where the sides differ and no rule decides; never made by `parse`."""

    base: tuple[Item, ...]
    ours: tuple[Item, ...]
    theirs: tuple[Item, ...]


class Group(NamedTuple):
    """An ordered run of items between `open` and `close`.

    keyed: items are matched by key, wherever they stand; otherwise by a list diff over their values (or by the first
    of their `identities` that all of them have and none share).
    separator: written between items and, if `closed`, after the last one too.
    keeps_both: when both sides insert different items at one spot, both are kept (ours first), equal ones once;
    otherwise that is a conflict (prose), unless one side's items contain the other's.
    """

    kind: str  # groups of different kinds are never merged into each other: "object", "array", "section", ...
    items: tuple[Item | Contested, ...]
    open: str = ""
    close: str = ""
    keyed: bool = True
    separator: str = ""
    closed: bool = False
    keeps_both: bool = True

    @property
    def text(self) -> str:
        return render(self)

    @property
    def value(self) -> Hashable:
        return self.text


class Folded(NamedTuple):
    """A group that is taken apart only if the sides differ inside it."""

    text: str
    value: Any  # what equality means; need not be hashable
    unfold: Callable[[], Group]


Body = Leaf | Group | Folded

EMPTY = Leaf("", "")


def items_of(group: Group, side: Side = "ours") -> Iterable[Item]:
    """The group's items, with `side` at the contested places."""
    for entry in group.items:
        if isinstance(entry, Item):
            yield entry
        else:
            yield from getattr(entry, side)


def render(body: Body, side: Side = "ours") -> str:
    """The text of a tree, with `side` at the contested places."""
    pieces: list[str] = []
    _write(body, side, pieces)
    return "".join(pieces)


def _write(body: Body, side: Side, pieces: list[str]) -> None:
    if not isinstance(body, Group):
        pieces.append(body.text)
        return
    pieces.append(body.open)
    items = list(items_of(body, side))
    last = len(items) - 1
    for position, item in enumerate(items):
        pieces += (item.lead, item.head)
        _write(item.body, side, pieces)
        pieces.append(item.gap)
        if position < last or body.closed:
            pieces.append(body.separator)
        pieces.append(item.trail)
    pieces.append(body.close)
