"""A checkpoint on its way: written down before it is sent, so that after a crash the very same is sent again."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from contextbase.gate.model import MOST_CHANGES
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import Content, WorkspaceId
from contextbase.workspaces.outgoing import Outgoing

__all__ = ["Checkpoint", "content_from_list", "content_to_list"]

_KEYS: Final = ("path", "base", "before", "content", "from")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    number: int
    changes: tuple[Outgoing, ...]  # in the order in which they are sent
    message: str = ""
    run: str | None = None

    def parts(self) -> Iterator[tuple[Outgoing, ...]]:
        """As many changes as one commit takes."""
        for start in range(0, len(self.changes), MOST_CHANGES):
            yield self.changes[start : start + MOST_CHANGES]

    def key(self, workspace_id: WorkspaceId, part: int) -> str:
        """For the gate: the same part of the same checkpoint happens once, however often it is sent."""
        return f"workspace:{workspace_id}:{self.number}:{part}"

    def to_json(self) -> str:
        changes = [
            [
                change.path,
                change.base,
                content_to_list(change.before),
                content_to_list(change.content),
                change.renamed_from,
            ]
            for change in self.changes
        ]
        return json.dumps({"number": self.number, "message": self.message, "run": self.run, "changes": changes})

    @classmethod
    def from_json(cls, text: str) -> "Checkpoint":
        written = json.loads(text)
        changes = []
        for values in written["changes"]:
            named = dict(zip(_KEYS, values, strict=True))
            changes.append(
                Outgoing(
                    path=TreePath.stored(named["path"]),
                    base=Seq(named["base"]),
                    before=content_from_list(named["before"]),
                    content=content_from_list(named["content"]),
                    renamed_from=None if named["from"] is None else TreePath.stored(named["from"]),
                )
            )
        return cls(number=written["number"], changes=tuple(changes), message=written["message"], run=written["run"])


def content_to_list(content: Content | None) -> list[Any] | None:
    if content is None:
        return None
    return [content.kind, None if content.hash is None else str(content.hash), content.size, content.executable]


def content_from_list(written: list[Any] | None) -> Content | None:
    if written is None:
        return None
    kind, name, size, executable = written
    return Content(
        kind=Kind(kind), hash=None if name is None else ContentHash.parse(name), size=size, executable=executable
    )
