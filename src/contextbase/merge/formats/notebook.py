"""Jupyter notebooks: JSON whose cells are merged one by one, their source by lines; outputs are the last writer's."""

from contextbase.merge.budget import Budget
from contextbase.merge.document import Group, Leaf
from contextbase.merge.formats.json import JsonFormat
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution
from contextbase.merge.shared import Shared

__all__ = ["NotebookFormat"]


class NotebookFormat:
    def __init__(self) -> None:
        self._json = JsonFormat(
            with_comments=False,
            derived=frozenset({"outputs", "execution_count"}),
            line_lists=frozenset({"source"}),
        )

    @property
    def name(self) -> str:
        return "notebook"

    def parse(self, text: str, budget: Budget, _shared: Shared | None = None) -> Group:
        return self._json.parse(text, budget)

    def is_valid(self, text: str, budget: Budget) -> bool:
        return self._json.is_valid(text, budget)

    def resolve(self, path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return self._json.resolve(path, base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        if len(path) > 2 and path[1] == "cells":
            return ContestedPlace(kind=PlaceKind.CELL, at="/".join(str(step) for step in path[2:]))
        return self._json.place(path)
