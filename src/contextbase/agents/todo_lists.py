"""Todo lists of agent programs as our events. Programs send the whole list, most without ids: an item keeps its id
here while it keeps its words, or its place."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from contextbase.agents.shortening import shortened
from contextbase.agents.spoken import Event

__all__ = ["TodoLists", "listed_todos"]

_MOST_TODOS: Final = 200
_LONGEST_CONTENT: Final = 2000
_STATES: Final = {
    "pending": "todo",
    "in_progress": "doing",
    "inProgress": "doing",
    "completed": "done",
    "cancelled": "canceled",
}


class TodoLists:
    """Of one turn."""

    def __init__(self) -> None:
        self._known: list[tuple[str, str]] = []  # ids and contents of the last list

    def snapshot(self, todos: Sequence[tuple[str, str]]) -> Event:
        """Of the content and the program's word for the status of each."""
        kept = [(shortened(content, _LONGEST_CONTENT)[0], status) for content, status in todos[:_MOST_TODOS]]
        ids = self._named([content for content, _ in kept])
        self._known = [(name, content) for name, (content, _) in zip(ids, kept, strict=True)]
        found = [
            {"todo_id": name, "content": content, "status": _STATES.get(status, "todo"), "order": order}
            for order, (name, (content, status)) in enumerate(zip(ids, kept, strict=True), 1)
        ]
        return "todo.snapshot", {"todos": found}

    def _named(self, contents: Sequence[str]) -> list[str]:
        left = dict(enumerate(self._known))
        names: dict[int, str] = {}
        for at, content in enumerate(contents):  # the same words
            same = next((place for place, (_, known) in left.items() if known == content), None)
            if same is not None:
                names[at] = left.pop(same)[0]
        for at in range(len(contents)):  # other words at the same place
            if at not in names and at in left:
                names[at] = left.pop(at)[0]
        taken = {name for name, _ in self._known} | set(names.values())
        for at, content in enumerate(contents):
            if at not in names:
                names[at] = _new_name(content, taken)
                taken.add(names[at])
        return [names[at] for at in range(len(contents))]


def _new_name(content: str, taken: set[str]) -> str:
    """By its words, so that it is the same in a later turn of the run."""
    name = f"t-{hashlib.sha256(content.encode(errors='replace')).hexdigest()[:12]}"
    number = 1
    while (numbered := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return numbered


def listed_todos(given: Any, content: str = "content") -> list[tuple[str, str]]:
    """Of a program's list of objects; `content` is its name for the words."""
    items = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    return [(str(one.get(content, "")), str(one.get("status"))) for one in items]
