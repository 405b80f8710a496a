"""Which version each line of a file comes from.

A blame goes on from version to version, at the cost of one diff each, and can be kept and continued later.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Generic, NamedTuple, TypeVar

from contextbase.compare.edits import quick_edits
from contextbase.compare.text import lines_of
from contextbase.errors import InvalidInput

__all__ = ["LineBlame", "Run", "blame_lines"]

Label = TypeVar("Label")


_NEW: Final = object()  # stands for the label of a line that the first parent does not have


class Run(NamedTuple, Generic[Label]):
    """Lines that stand together and come from one version."""

    label: Label
    lines: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LineBlame(Generic[Label]):
    """A version's content, and for each of its lines the label of the version that it comes from."""

    content: bytes
    labels: Sequence[Label]

    @classmethod
    def start(cls, content: bytes, label: Label) -> "LineBlame[Label]":
        return cls(content=content, labels=[label] * len(lines_of(content)))

    @classmethod
    def resume(cls, content: bytes, runs: Iterable[Run[Label]]) -> "LineBlame[Label]":
        """A blame that was kept as its content and `runs()`."""
        return cls(content=content, labels=[run.label for run in runs for _ in range(run.lines)])

    def runs(self) -> list[Run[Label]]:
        return [Run(label, sum(1 for _ in lines)) for label, lines in groupby(self.labels)]

    def then(self, content: bytes, label: Label, *, other: "LineBlame[Label] | None" = None) -> "LineBlame[Label]":
        """The blame of the next version. `other` is that of its second parent, if it has one: a line that only the
        other has comes from where the other got it."""
        labels = _carried(self.content, self.labels, content, label if other is None else _NEW)
        if other is not None:
            theirs = _carried(other.content, other.labels, content, label)
            labels = [there if here is _NEW else here for here, there in zip(labels, theirs, strict=True)]
        return LineBlame(content=content, labels=labels)


def blame_lines(versions: Iterable[tuple[Label, bytes]], *, second_parents: Mapping[Label, Label]) -> LineBlame[Label]:
    """The blame of the last of the versions, which come oldest first, each made from the one before it and, if it has
    one, from its second parent: the version that a writer started from who was overtaken.

    Raises `InvalidInput` if there is no version, or a second parent is not among those before.
    """
    wanted = set(second_parents.values())
    kept: dict[Label, LineBlame[Label]] = {}
    blame: LineBlame[Label] | None = None
    for label, content in versions:
        parent = second_parents.get(label)
        if parent is not None and parent not in kept:
            raise InvalidInput(f"Version {parent}, from which {label} was made, is not among the versions before it.")
        other = None if parent is None else kept[parent]
        blame = LineBlame.start(content, label) if blame is None else blame.then(content, label, other=other)
        if label in wanted:
            kept[label] = blame
    if blame is None:
        raise InvalidInput("There is no version to blame.")
    return blame


def _carried(old: bytes, labels: Sequence[Any], new: bytes, fresh: object) -> list[Any]:
    """For each line of the new content its label in the old; `fresh` for one that is not in it."""
    carried = list(labels)
    for start, end, new_start, new_end in reversed(quick_edits(old, new)):
        carried[start:end] = [fresh] * (new_end - new_start)
    return carried
