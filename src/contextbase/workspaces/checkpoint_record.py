"""A checkpoint on its way: written down before it is sent, so that after a crash the very same is sent again."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from contextbase.gate.model import MOST_CHANGES
from contextbase.gate.trusted import MovedFolder
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.model import FolderContent, WorkspaceId

__all__ = ["Checkpoint", "content_from_list", "content_to_list"]

_KEYS: Final = ("path", "base", "before", "content", "from", "origin")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    number: int
    changes: tuple[PendingChange, ...]  # in the order in which they are sent
    message: str = ""
    message_id: str | None = None
    run: str | None = None
    moved: tuple[MovedFolder, ...] = ()

    def parts(self) -> Iterator[tuple[PendingChange, ...]]:
        """As many changes as one commit takes."""
        for start in range(0, len(self.changes), MOST_CHANGES):
            yield self.changes[start : start + MOST_CHANGES]

    def key(self, workspace_id: WorkspaceId, index: int, part: tuple[PendingChange, ...]) -> str:
        """For the gate: the same part of the same checkpoint happens once, however often it is sent. Another one, after
        this was given up, is another request."""
        told = [self.message, self.run, _written(part), *self._moved_to_list()]
        digest = sha256(json.dumps(told).encode()).hexdigest()[:16]
        return f"workspace:{workspace_id}:{self.number}:{index}:{digest}"

    def moved_with(self, index: int) -> tuple[MovedFolder, ...]:
        """Folders go with the last part: what is left in them by then is others'."""
        is_last = (index + 1) * MOST_CHANGES >= len(self.changes)
        return self.moved if is_last else ()

    def to_json(self) -> str:
        changes = _written(self.changes)
        return json.dumps(
            {
                "number": self.number,
                "message": self.message,
                "message_id": self.message_id,
                "run": self.run,
                "changes": changes,
                "moved": self._moved_to_list(),
            }
        )

    def _moved_to_list(self) -> list[list[Any]]:
        return [[folder.path, folder.target, folder.base] for folder in self.moved]

    @classmethod
    def from_json(cls, text: str) -> "Checkpoint":
        written = json.loads(text)
        changes = []
        for values in written["changes"]:
            named = dict(zip(_KEYS, values, strict=False))
            changes.append(
                PendingChange(
                    path=TreePath.stored(named["path"]),
                    base=Seq(named["base"]),
                    before=content_from_list(named["before"]),
                    content=content_from_list(named["content"]),
                    renamed_from=None if named["from"] is None else TreePath.stored(named["from"]),
                    origin=None if named.get("origin") is None else TreePath.stored(named["origin"]),
                )
            )
        return cls(
            number=written["number"],
            changes=tuple(changes),
            message=written["message"],
            message_id=written.get("message_id"),
            run=written["run"],
            moved=tuple(
                MovedFolder(path=TreePath.stored(path), target=TreePath.stored(target), base=Seq(base))
                for path, target, base in written.get("moved", ())
            ),
        )


def _written(changes: Iterable[PendingChange]) -> list[list[Any]]:
    return [
        [
            change.path,
            change.base,
            content_to_list(change.before),
            content_to_list(change.content),
            change.renamed_from,
            *(() if change.origin is None else (change.origin,)),  # without it as it was before there were origins
        ]
        for change in changes
    ]


def content_to_list(content: FolderContent | None) -> list[Any] | None:
    if content is None:
        return None
    return [content.kind, None if content.hash is None else str(content.hash), content.size, content.executable]


def content_from_list(written: list[Any] | None) -> FolderContent | None:
    if written is None:
        return None
    kind, name, size, executable = written
    return FolderContent(
        kind=Kind(kind), hash=None if name is None else ContentHash.parse(name), size=size, executable=executable
    )
