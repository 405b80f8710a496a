"""A file as an ordered tree that, concatenated, gives back exactly its source text.

A format's `parse` builds the tree, `threeway` merges three of them, `render` makes text of the result. Text handed to a
format has no byte-order mark, `\\n` for every line end (a lone side with mixed ends keeps its `\\r`s as plain text) and
ends with `\\n` unless it is empty; the engine takes these off before and puts them back after. So a line-based format
may take items for runs of whole lines.

Nodes are named tuples: a merge makes thousands, and they cost a third of a frozen dataclass.
"""

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, NamedTuple, cast

__all__ = [
    "Alternatives",
    "Body",
    "Contested",
    "Folded",
    "Group",
    "GroupItem",
    "Insertions",
    "Leaf",
    "Side",
    "items_of",
    "pieces_of",
    "render",
]

Side = Literal["base", "ours", "theirs"]


SIDES: Final[tuple[Side, Side, Side]] = ("base", "ours", "theirs")


class Alternatives(NamedTuple):
    """Text that differs by side."""

    base: str
    ours: str
    theirs: str


class Leaf(NamedTuple):
    """Source text that is not taken apart. `value` is what equality means: the parsed scalar, or normalised text."""

    text: str
    value: Hashable


class GroupItem(NamedTuple):
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

    @property
    def margins(self) -> tuple[str, ...]:
        """What stands around the body."""
        return self.lead, self.head, self.gap, self.trail


class Insertions(NamedTuple):
    """What both sides put at one spot of a keyed group."""

    ours: list[GroupItem]
    theirs: list[GroupItem]


class Contested(NamedTuple):
    """A place of a merged group where the sides differ and no rule decides; never made by `parse`."""

    base: tuple[GroupItem, ...]
    ours: tuple[GroupItem, ...]
    theirs: tuple[GroupItem, ...]


class Group(NamedTuple):
    """An ordered run of items between `open` and `close`.

    keyed: items are matched by key, wherever they stand; otherwise by a list diff over their values (or by the first
    of their `identities` that all of them have and none share).
    separator: written between items and, if `closed`, after the last one too.
    keeps_both: when both sides insert different items at one spot, both are kept (ours first), equal ones once;
    otherwise that is a conflict (prose), unless one side's items contain the other's.
    keeps_between: whether that also holds between two items that were there; at the end it does in any case.
    elements_stand_alone: whether changes of two neighbours in a list have nothing to do with each other (data), or are
    most likely about the same (prose).
    joins_new: whether lists that both sides created are taken for one that both inserted into.
    may_join: says of a keyed group whether such insertions are both kept; None: always.
    contests_renames: when both sides removed the same keys and each put other keys in their place, that is a conflict;
    otherwise both sides' new keys are kept, as a merge of mappings does.
    filler: the key of what is no entry, where a group without entries would not be one: `key:` says null in YAML.
    """

    kind: str  # groups of different kinds are never merged into each other: "object", "array", "section", ...
    items: tuple[GroupItem | Contested, ...]
    open: str = ""
    close: str = ""
    keyed: bool = True
    separator: str = ""
    closed: bool = False
    keeps_both: bool = True
    keeps_between: bool = True
    elements_stand_alone: bool = False
    joins_new: bool = True
    may_join: Callable[[Insertions], bool] | None = None
    contests_renames: bool = True
    filler: Hashable = None
    agreed: AbstractSet[int] = frozenset()  # after a merge: the ids of the items that are one object on all sides

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
    in_short: Callable[[str], str] | None = None  # what of the text is left where a result is checked in short


Body = Leaf | Group | Folded


def items_of(group: Group) -> tuple[GroupItem, ...]:
    """The items of a group that was parsed, in which nothing is contested."""
    return cast("tuple[GroupItem, ...]", group.items)


def render(body: Body, side: Side = "ours") -> str:
    """The text of a tree, with `side` at the contested places."""
    return "".join([piece if isinstance(piece, str) else getattr(piece, side) for piece in pieces_of(body)])


def pieces_of(body: Body, *, in_short: bool = False) -> list[str | Alternatives]:
    """The text of a tree in order, as plain text and as alternatives where the sides differ; in short it is without the
    items that are one object on all sides, and without the inside of what one side alone has."""
    pieces: list[str | Alternatives] = []
    _write(body, pieces, in_short=in_short)
    return pieces


def _write(body: Body, pieces: list[str | Alternatives], *, in_short: bool) -> None:
    if not isinstance(body, Group):
        pieces.append(_text(body, in_short=in_short))
        return
    pieces.append(body.open)
    agreed = body.agreed
    for entry, separator in zip(body.items, _separators(body), strict=True):
        if isinstance(entry, Contested):
            after = (separator,) * 3 if isinstance(separator, str) else separator
            runs = (_run(body, items, last, in_short=in_short) for items, last in zip(entry, after, strict=True))
            pieces.append(Alternatives(*runs))
        elif not in_short or id(entry) not in agreed:
            _key, inner, lead, head, gap, trail, _identities = entry
            if isinstance(inner, Group):
                pieces.append(lead + head)
                _write(inner, pieces, in_short=in_short)
                pieces += (gap, separator, trail)
                continue
            text = _text(inner, in_short=in_short) if in_short else inner.text
            if isinstance(separator, str):
                pieces.append(f"{lead}{head}{text}{gap}{separator}{trail}")
            else:
                pieces += (f"{lead}{head}{text}{gap}", separator, trail)
    pieces.append(body.close)


def _separators(group: Group) -> Sequence[str | Alternatives]:
    """What is written after each entry: the separator, on the sides where another item follows."""
    separator, entries = group.separator, group.items
    if not separator:
        return [""] * len(entries)
    last = separator if group.closed else ""
    if not any(isinstance(entry, Contested) for entry in entries):
        return [*[separator] * (len(entries) - 1), last][: len(entries)]
    following = Alternatives(last, last, last)  # what stands before the items that follow on each side
    found: list[str | Alternatives] = []
    for entry in reversed(entries):
        found.append(following if len(set(following)) > 1 else following.ours)
        counts = entry if isinstance(entry, Contested) else ((entry,),) * 3
        following = Alternatives(
            *(separator if items else after for items, after in zip(counts, following, strict=True))
        )
    found.reverse()
    return found


def _text(body: Body, *, in_short: bool) -> str:
    if in_short and isinstance(body, Folded) and body.in_short is not None:
        return body.in_short(body.text)
    return body.text


def _run(group: Group, items: tuple[GroupItem, ...], last: str, *, in_short: bool) -> str:
    """The text of contested items of one side, with `last` as the separator after the last of them."""
    text = ""
    for item, separator in zip(items, [*[group.separator] * (len(items) - 1), last], strict=False):
        text += f"{item.lead}{item.head}{_text(item.body, in_short=in_short)}{item.gap}{separator}{item.trail}"
    return text
