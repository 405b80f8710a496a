"""What a file format must give the engine. One suite (tests/property/merge) runs over every registered format."""

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from contextbase.merge.budget import Budget
from contextbase.merge.document import Group, Leaf
from contextbase.merge.model import ContestedPlace
from contextbase.merge.shared import Shared

__all__ = ["Format", "InvalidResult", "Path", "Resolution", "Unstructured", "is_readable"]

Path = tuple[Hashable, ...]
"""The keys from the root of a document to a place in it; a position (int) where an item has no key."""


class Unstructured(Exception):
    """The text is not of this format, or is beyond its bounds; the message says which, for a note."""


class InvalidResult(Unstructured):
    """All sides could be read, but what became of them is not a valid file."""


class Resolution(NamedTuple):
    """A rule's answer to a contested leaf. The text must come from one of the sides (C4)."""

    text: str
    applies: bool = True  # False: a mere suggestion


class Format(Protocol):
    """How one kind of text is read. No method raises anything but `Unstructured` and `BudgetSpent`."""

    @property
    def name(self) -> str:
        """The strategy's name in answers: "json"."""
        ...

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        """The document. Lossless: `render(parse(text)) == text`. Raises `Unstructured` for anything it is not sure of,
        and for a key that stands twice in a keyed group. `shared`: what it has in common
        with the other sides."""
        ...

    def is_valid(self, text: str, budget: Budget) -> bool:
        """Whether a real parser of the format takes it and no key stands twice in it. Called on every clean result."""
        ...

    def resolve(self, path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        """A decision, or a suggestion, for a leaf both sides changed (or, without `base`, both added)."""
        ...

    def place(self, path: Path) -> ContestedPlace:
        """How a conflict at this path is shown."""
        ...


def is_readable(reader: Format, text: str, budget: Budget) -> bool:
    """For formats whose `parse` is as strict as any real parser."""
    try:
        reader.parse(text, budget)
    except Unstructured:
        return False
    return True
