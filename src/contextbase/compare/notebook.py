"""Notebooks cell by cell: which came, went, moved or changed, and the lines of their source that did."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from contextbase.compare.model import CellDiff, ValueChangeKind
from contextbase.compare.text import hunks_between
from contextbase.compare.values import Data, ValueNode, mapping_node
from contextbase.merge.alignment import align
from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured

__all__ = ["Cell", "CellPair", "cell_diffs", "cells_of", "matched_cells", "without_cells"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    id: str | None
    type: str
    source: str
    outputs: Data  # with the execution count: both are made by running it
    metadata: Data  # whatever else it has

    @property
    def written(self) -> tuple[str, str]:
        """What a person wrote of it."""
        return self.type, self.source


class CellPair(NamedTuple):
    """A cell's positions on both sides; None where it is not."""

    old: int | None
    new: int | None
    moved: bool = False


def cells_of(notebook: ValueNode) -> list[Cell]:
    """Raises `Unstructured` for JSON that is not a notebook of format 4."""
    cells = notebook.data.get("cells") if isinstance(notebook.data, dict) else None
    if not isinstance(cells, list):
        raise Unstructured("it has no list of cells")
    return [_cell(cell) for cell in cells]


def without_cells(notebook: ValueNode) -> ValueNode:
    """What else a notebook has: the metadata, the version of the format."""
    parts = notebook.unfold() if notebook.unfold is not None else {}
    members = {key: part for key, part in parts.items() if key != "cells"} if isinstance(parts, dict) else {}
    return mapping_node(notebook.write, members)


def cell_diffs(old: list[Cell], new: list[Cell], *, context: int, budget: Budget) -> Iterator[CellDiff]:
    """The cells that differ, in the order of the new notebook, each removed one where it stood."""
    for pair in matched_cells(old, new, budget):
        budget.tick()
        was = None if pair.old is None else old[pair.old]
        now = None if pair.new is None else new[pair.new]
        found = _diff(pair, was, now, context)
        if found is not None:
            yield found


def matched_cells(old: list[Cell], new: list[Cell], budget: Budget) -> list[CellPair]:
    """Which cells of both sides are the same: by id if all have one; else those with equal source, and the ones that
    stand between the same neighbours."""
    old_ids, new_ids = _names(old), _names(new)
    if old_ids is None or new_ids is None:
        return _by_source(old, new, budget)
    positions = {name: position for position, name in enumerate(old_ids)}
    stayed = {old_ids[at] for at, _ in align(old_ids, new_ids, budget)}
    pairs: list[CellPair] = []
    in_new = set(new_ids)
    gone = iter([position for position, name in enumerate(old_ids) if name not in in_new])
    next_gone = next(gone, None)
    for position, name in enumerate(new_ids):
        was_at = positions.get(name)
        while next_gone is not None and was_at is not None and name in stayed and next_gone < was_at:
            pairs.append(CellPair(next_gone, None))
            next_gone = next(gone, None)
        pairs.append(CellPair(was_at, position, moved=was_at is not None and name not in stayed))
    return [*pairs, *(CellPair(at, None) for at in ([] if next_gone is None else [next_gone, *gone]))]


def _by_source(old: list[Cell], new: list[Cell], budget: Budget) -> list[CellPair]:
    pairs: list[CellPair] = []
    at = new_at = 0
    same = align([cell.written for cell in old], [cell.written for cell in new], budget)
    for end, new_end in [*same, (len(old), len(new))]:
        if end - at == new_end - new_at:
            pairs += (CellPair(one, other) for one, other in zip(range(at, end), range(new_at, new_end), strict=True))
        else:
            pairs += (CellPair(position, None) for position in range(at, end))
            pairs += (CellPair(None, position) for position in range(new_at, new_end))
        pairs.append(CellPair(end, new_end))
        at, new_at = end + 1, new_end + 1
    return pairs[:-1]


def _names(cells: list[Cell]) -> list[Hashable] | None:
    names: list[Hashable] = [cell.id for cell in cells]
    return names if None not in names and len(set(names)) == len(names) else None


def _diff(pair: CellPair, old: Cell | None, new: Cell | None, context: int) -> CellDiff | None:
    shown = new or old
    if shown is None or (old == new and not pair.moved):
        return None
    sources = [b"" if cell is None else cell.source.encode("utf-8", "surrogatepass") for cell in (old, new)]
    found = CellDiff(
        kind=ValueChangeKind.ADDED if old is None else ValueChangeKind.REMOVED,
        cell=shown.id,
        type=shown.type,
        old_position=pair.old,
        new_position=pair.new,
        hunks=hunks_between(sources[0], sources[1], context=context),
    )
    if old is None or new is None:
        return found
    return replace(
        found,
        kind=ValueChangeKind.MOVED if pair.moved else ValueChangeKind.CHANGED,
        type_changed=old.type != new.type,
        outputs_changed=old.outputs != new.outputs,
        metadata_changed=old.metadata != new.metadata,
    )


def _cell(cell: Data) -> Cell:
    if not isinstance(cell, dict):
        raise Unstructured("a cell is not an object")
    known = {"id", "cell_type", "source", "outputs", "execution_count"}
    name, kind = cell.get("id"), cell.get("cell_type")
    return Cell(
        id=name if isinstance(name, str) else None,
        type=kind if isinstance(kind, str) else "",
        source=_source(cell.get("source", "")),
        outputs=(cell.get("outputs"), cell.get("execution_count")),
        metadata={key: value for key, value in cell.items() if key not in known},
    )


def _source(source: Data) -> str:
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise Unstructured("a cell's source is not text")
    return "".join(lines)
