"""CSV and TSV: rows by their key column, cells by their column's name."""

import re
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Folded, Group, GroupItem, Leaf
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured, is_readable
from contextbase.merge.shared import Shared

__all__ = ["TableFormat"]

_IDENTIFYING: Final = ("id", "key", "name", "code", "slug")


class TableFormat:
    name = "table"

    def parse(self, text: str, budget: Budget, _shared: Shared | None = None) -> Group:
        delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
        if ";" in text.partition("\n")[0] and delimiter not in text.partition("\n")[0]:
            delimiter = ";"
        records = _records(text, delimiter, budget)
        if not records:
            return Group(kind="file", items=())
        header, rows = records[0], [record for record in records[1:] if record != [""]]
        if any(len(row) != len(header) for row in rows) or len(rows) + 1 < len(records):
            raise Unstructured("its rows have different lengths")
        names = [_plain(cell) for cell in header]
        column = next((names.index(name) for name in _IDENTIFYING if name in names), 0)
        keys = [_plain(row[column]) for row in rows]
        keyed = len(set(keys)) == len(keys)
        items = tuple(
            GroupItem(key=key if keyed else None, body=_row(row, names, delimiter), trail="\n")
            for key, row in zip(keys, rows, strict=True)
        )
        opening = delimiter.join(header) + "\n"
        table = Group(kind=f"table {names}", items=items, open=opening, keyed=keyed)
        return Group(kind="file", items=(GroupItem(key="", body=table),))

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_readable(self, text, budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return ContestedPlace(kind=PlaceKind.ROW, at=" ".join(str(step) for step in path if step != ""))


def _records(text: str, delimiter: str, budget: Budget) -> list[list[str]]:
    """The cells as written, quotes and all; a record may span lines inside quotes."""
    cell = re.compile(rf'("(?:[^"]|"")*"|[^"{delimiter}\n][^{delimiter}\n]*|)({delimiter}|\n)')
    records: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        budget.tick()
        match = cell.match(text, at)
        if match is None:
            raise Unstructured("a quote stands where none may")
        records[-1].append(match.group(1))
        if match.group(2) == "\n":
            records.append([])
        at = match.end()
    return records[:-1]


def _row(cells: list[str], names: list[str], delimiter: str) -> Folded:
    text = delimiter.join(cells)

    def unfold() -> Group:
        unique = len(set(names)) == len(names)
        items = tuple(
            GroupItem(key=name if unique else number, body=Leaf(cell, _plain(cell)))
            for number, (name, cell) in enumerate(zip(names, cells, strict=True))
        )
        return Group(kind="row", items=items, separator=delimiter)

    return Folded(text, text, unfold)


def _plain(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell
