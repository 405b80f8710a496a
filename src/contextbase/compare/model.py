"""What a comparison takes and answers: two sides of a file, and the difference between them."""

import mimetypes
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

from contextbase.compare.values import Step, Value
from contextbase.ids import ContentHash
from contextbase.merge import EntryKind
from contextbase.vocabulary import DiffKind, DiffStatus, ValueChangeKind

__all__ = [
    "CellDiff",
    "CompareLimits",
    "DiffKind",
    "DiffStatus",
    "FileDiff",
    "Hunk",
    "Side",
    "ValueChange",
    "ValueChangeKind",
    "guessed_mime",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareLimits:
    """Beyond these a comparison gives way: from structure to text, from text to sizes and hashes. A note says so."""

    text_bytes: int = 16 << 20
    structured_bytes: int = 2 << 20
    seconds: float = 1.0  # for the structure; lines need no limit of time
    context: int = 3  # unchanged lines around each change


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A file as it stands on one side. `content` is None for a folder, and for a file that was not loaded."""

    content: bytes | None
    size: int
    hash: ContentHash | None  # None for a folder
    kind: EntryKind = EntryKind.FILE
    executable: bool = False
    mime: str | None = None

    @classmethod
    def of(cls, content: bytes, *, kind: EntryKind = EntryKind.FILE, executable: bool = False) -> Self:
        return cls(content=content, size=len(content), hash=ContentHash.of(content), kind=kind, executable=executable)

    @classmethod
    def folder(cls) -> Self:
        return cls(content=None, size=0, hash=None, kind=EntryKind.DIRECTORY)


class Hunk(NamedTuple):
    """A stretch of lines that changed, with the unchanged ones around it, as git shows it.

    A start is the number of the first line; of an empty stretch, that of the line before it.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: bytes  # the last line above it that looks like a heading or a function
    lines: tuple[bytes, ...]  # each with a mark in front: space, "-" or "+"; only the last of a file lacks its newline


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueChange:
    """One value that came, went, became another or, in a list, stands elsewhere."""

    kind: ValueChangeKind
    old_path: tuple[Step, ...] | None  # None: it was not there
    new_path: tuple[Step, ...] | None  # None: it is gone
    old: Value | None = None  # None too for one that moved: a change of what is in it is a change of its own
    new: Value | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CellDiff:
    """One notebook cell that changed. Positions count from 0."""

    kind: ValueChangeKind  # MOVED: it may have been changed too
    cell: str | None  # its id, if the notebook gives cells one
    type: str  # "code", "markdown", "raw"
    old_position: int | None
    new_position: int | None
    hunks: tuple[Hunk, ...] = ()  # of its source
    type_changed: bool = False
    outputs_changed: bool = False  # or its execution count
    metadata_changed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDiff:
    """How a file differs from what it was. `old` and `new` are without content: the hunks have what changed."""

    status: DiffStatus
    kind: DiffKind
    old_path: str | None
    new_path: str | None
    old: Side | None
    new: Side | None
    hunks: tuple[Hunk, ...] = ()
    changes: tuple[ValueChange, ...] = ()
    cells: tuple[CellDiff, ...] = ()
    encoding: str = "utf-8"  # how the new text is written down, if it is text; hunks are in UTF-8 if it is UTF-16 or 32
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it stands, or stood last."""
        return self.new_path or self.old_path or ""

    @property
    def mode_changed(self) -> bool:
        return self.old is not None and self.new is not None and self.old.executable != self.new.executable

    @property
    def kind_changed(self) -> bool:
        """Whether a file became a link, a link a folder, and so on."""
        return self.old is not None and self.new is not None and self.old.kind is not self.new.kind


@lru_cache(maxsize=4096)
def guessed_mime(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"
