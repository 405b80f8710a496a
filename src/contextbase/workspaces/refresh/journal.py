"""What a refresh is about to do in a folder: written down before the first file is touched, so that after a crash it is
known of every path what it goes on from."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from contextbase.ids import Seq, TreePath
from contextbase.workspaces.checkpoint_record import content_from_list, content_to_list
from contextbase.workspaces.commit_plan import CommittedPath
from contextbase.workspaces.model import FolderContent

__all__ = ["RefreshJournal", "RefreshStep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshStep:
    """One path. Once it is done, the path goes on from what the project has there."""

    number: int
    path: TreePath
    expected: FolderContent | None  # what must stand there, or the agent has gone on
    content: FolderContent | None  # what is to stand there: the project's, or a merge with it
    head: FolderContent | None  # what the project has there
    origin: TreePath | None = None  # where the view has the file, if not at the path

    @property
    def is_merge(self) -> bool:
        return self.content != self.head

    def held(self, seq: Seq) -> CommittedPath:
        return CommittedPath(base=seq, content=self.head, origin=None if self.head is None else self.origin)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshJournal:
    id: str  # in the names of what was staged for it
    seq: Seq  # the snapshot that the contents are of
    steps: tuple[RefreshStep, ...]  # in the order in which they are carried out
    emptied: tuple[TreePath, ...] = ()  # folders to be removed if nothing is left in them, from below

    def to_json(self) -> str:
        return json.dumps(
            {
                "id": self.id,
                "seq": self.seq,
                "steps": [
                    [
                        step.number,
                        step.path,
                        content_to_list(step.expected),
                        content_to_list(step.content),
                        content_to_list(step.head),
                        step.origin,
                    ]
                    for step in self.steps
                ],
                "emptied": self.emptied,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "RefreshJournal":
        written = json.loads(text)
        return cls(
            id=written["id"],
            seq=Seq(written["seq"]),
            steps=tuple(map(_step, written["steps"])),
            emptied=tuple(map(TreePath.stored, written["emptied"])),
        )

    def held(self, done: Collection[int]) -> dict[TreePath, CommittedPath]:
        """What the paths of the steps that are done go on from."""
        return {step.path: step.held(self.seq) for step in self.steps if step.number in done}


def _step(written: list[Any]) -> RefreshStep:
    number, path, expected, content, head, origin = written
    return RefreshStep(
        number=number,
        path=TreePath.stored(path),
        expected=content_from_list(expected),
        content=content_from_list(content),
        head=content_from_list(head),
        origin=None if origin is None else TreePath.stored(origin),
    )
