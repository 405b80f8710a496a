"""Which version each value of a structured file, or each cell of a notebook, comes from."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from contextbase.compare.notebook import cells_of, matched_cells
from contextbase.compare.readers import READERS
from contextbase.compare.structure import apply_changes, changes_between
from contextbase.compare.values import Data, Step, ValueNode, pointer
from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured
from contextbase.merge.sniff import FileType, decode, file_type

__all__ = ["Part", "PartBlame"]

Label = TypeVar("Label")
_NEW: Final = object()  # stands for the label of a value that the first parent does not have
_CELLS: Final = "cells"


class Part(NamedTuple, Generic[Label]):
    """A scalar, or a notebook's cell (`/cells/3`), and the version that gave it its value."""

    pointer: str
    label: Label


@dataclass(frozen=True, kw_only=True, slots=True)
class PartBlame(Generic[Label]):
    """As `LineBlame`, for files that are made of values. A version that cannot be read is passed over: what it changed
    counts as changed by the next that can."""

    kind: FileType
    budget: Budget  # what `node` was read with, and is taken apart with
    labels: Any = None  # a tree of the shape of the data with labels for scalars; None: no version could be read so far
    node: ValueNode | None = None

    @classmethod
    def start(cls, content: bytes, label: Label, *, path: str, budget: Budget) -> "PartBlame[Label]":
        """Raises `Unstructured` if a file of that name is not made of values, `BudgetSpent` if it takes too long."""
        kind = file_type(path, content)
        if kind not in READERS:
            raise Unstructured("it is not made of values")
        return cls(kind=kind, budget=budget).then(content, label)

    @classmethod
    def resume(cls, content: bytes, labels: Any, *, path: str, budget: Budget) -> "PartBlame[Label]":
        """A blame that was kept as its labels and the content they are of."""
        kind = file_type(path, content)
        return cls(kind=kind, budget=budget, labels=labels, node=READERS[kind](decode(content)[0], budget))

    def then(self, content: bytes, label: Label, *, other: "PartBlame[Label] | None" = None) -> "PartBlame[Label]":
        """The blame of the next version; `other` is that of its second parent, if it has one.

        Raises `BudgetSpent` when the time for the whole chain is up.
        """
        try:
            node = READERS[self.kind](decode(content)[0], self.budget)
            labels = _carried(self, node, label if other is None else _NEW)
            if other is not None:
                labels = _joined(labels, _carried(other, node, label))
        except (Unstructured, UnicodeDecodeError, RecursionError):
            return self
        return replace(self, labels=labels, node=node)

    def parts(self) -> list[Part[Label]]:
        """Every scalar or cell, in no order but that of lists."""
        return [Part(pointer(path), label) for path, label in _leaves((), self.labels)] if self.node is not None else []


def _carried(blame: PartBlame[Any], node: ValueNode, fresh: object) -> Any:
    """The labels of the node's values in the blame; `fresh` for those that are not in it."""
    if blame.kind is FileType.NOTEBOOK:
        return {_CELLS: _carried_cells(blame, node, fresh)}
    if blame.node is None:
        return _filled(node.data, fresh)
    changes = changes_between(blame.node, node, blame.budget)
    return apply_changes(blame.labels, changes, lambda value: _filled(value.data, fresh))


def _carried_cells(blame: PartBlame[Any], node: ValueNode, fresh: object) -> list[Any]:
    cells = cells_of(node)
    labels = [fresh] * len(cells)
    was = [] if blame.node is None else cells_of(blame.node)
    for pair in matched_cells(was, cells, blame.budget):
        if pair.old is not None and pair.new is not None and was[pair.old].written == cells[pair.new].written:
            labels[pair.new] = blame.labels[_CELLS][pair.old]
    return labels


def _filled(data: Data, label: object) -> Any:
    if isinstance(data, dict):
        return {key: _filled(value, label) for key, value in data.items()}
    return [_filled(value, label) for value in data] if isinstance(data, list) else label


def _joined(ours: Any, theirs: Any) -> Any:
    if isinstance(ours, dict):
        return {key: _joined(label, theirs[key]) for key, label in ours.items()}
    if isinstance(ours, list):
        return [_joined(*pair) for pair in zip(ours, theirs, strict=True)]
    return theirs if ours is _NEW else ours


def _leaves(path: tuple[Step, ...], labels: Any) -> Iterator[tuple[tuple[Step, ...], Any]]:
    if isinstance(labels, dict):
        for key, inner in labels.items():
            yield from _leaves((*path, key), inner)
    elif isinstance(labels, list):
        for position, inner in enumerate(labels):
            yield from _leaves((*path, position), inner)
    else:
        yield path, labels
