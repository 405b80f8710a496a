"""What is asked of a search, and what it answers."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidInput
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.search.path_filter import PathFilter
from contextbase.search.pattern import TextPattern
from contextbase.search.shown_line import FoundLine
from contextbase.vocabulary import SkipReason, StopReason

__all__ = [
    "LARGEST_SEARCHED",
    "MOST_CONTEXT",
    "ContentPage",
    "ContentQuery",
    "FoundFile",
    "NamePage",
    "NameQuery",
    "SearchedFile",
    "SkipReason",
    "SkippedFile",
    "StopReason",
]

LARGEST_SEARCHED: Final = 8 << 20  # bytes of a file; what is larger is named as not searched
MOST_CONTEXT: Final = 20
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentQuery:
    pattern: TextPattern
    files: PathFilter = field(default_factory=PathFilter)
    context: int = 0  # lines before and after each match
    per_file: int | None = None  # lines that match

    def __post_init__(self) -> None:
        if not 0 <= self.context <= MOST_CONTEXT:
            raise InvalidInput(f"A match is shown with 0 to {MOST_CONTEXT} lines of context, not {self.context}.")
        if self.per_file is not None and self.per_file < 1:
            raise InvalidInput("The most matches of a file must be 1 or more; leave it out for all of them.")


@dataclass(frozen=True, kw_only=True, slots=True)
class NameQuery:
    words: str = ""  # parts of the path, in any order; or letters of the name, in order. Empty: every file
    files: PathFilter = field(default_factory=PathFilter)

    def __post_init__(self) -> None:
        if len(self.words) > _LONGEST_NAME or not self.words.isprintable():
            raise InvalidInput(f"A name to look for has at most {_LONGEST_NAME} printable characters.")


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchedFile:
    """A file that the caller may see, and that may match."""

    path: TreePath
    size: int
    content_hash: ContentHash | None  # None: what the workspace's folder has at the path


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedFile:
    """One that was not searched, though it may hold what was looked for."""

    path: TreePath
    reason: SkipReason


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    path: TreePath
    lines: tuple[FoundLine, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentPage:
    """In path order. What lies between two pages is in one of them, whatever is committed meanwhile."""

    epoch: UUID
    seq: Seq  # the snapshot that was searched; of a workspace, the one it is based on
    files: tuple[FoundFile, ...]
    skipped: tuple[SkippedFile, ...]
    cursor: str | None  # where to go on; None: this was the end
    stopped_by: StopReason | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NamePage:
    """The best first; without words, in path order."""

    epoch: UUID
    seq: Seq
    paths: tuple[TreePath, ...]
    cursor: str | None
