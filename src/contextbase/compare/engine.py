"""The comparison of two sides of a file: by structure where both can be read, by lines where they are text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextbase.compare.edits import is_coarse
from contextbase.compare.model import CompareLimits, DiffKind, DiffStatus, FileDiff, Hunk, Side, guessed_mime
from contextbase.compare.notebook import cell_diffs, cells_of, without_cells
from contextbase.compare.readers import READERS
from contextbase.compare.structure import changes_between
from contextbase.compare.text import hunks_between, lines_of
from contextbase.merge import EntryKind
from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.ports import Unstructured
from contextbase.merge.sniff import FileType, decode, file_type, is_binary, is_wide

__all__ = ["LITTLE", "Compared", "compare", "compare_all", "plain_text"]

LITTLE: Final = 16 << 10  # bytes that are compared within a few milliseconds
_DEFAULT_LIMITS: Final = CompareLimits()
_COARSE: Final = "Its lines differ too much to compare them all: lines that are the same may be shown as replaced."
_ONE_FILE: Final = {EntryKind.FILE: DiffKind.TEXT, EntryKind.SYMLINK: DiffKind.LINK}


def compare(
    old: Side | None,
    new: Side | None,
    *,
    path: str,
    old_path: str | None = None,
    limits: CompareLimits = _DEFAULT_LIMITS,
) -> FileDiff:
    """How the file at `path` differs from what it was; None means that it is not there on that side.

    `old_path` is where it stood, if elsewhere: the caller knows, nothing is guessed. Sides with one hash need not be
    loaded. Never raises, whatever the bytes.
    """
    old_path = old_path or path
    diff = FileDiff(
        status=_status(old, new, renamed=old_path != path),
        kind=DiffKind.BINARY,
        old_path=None if old is None else old_path,
        new_path=None if new is None else path,
        old=_facts(old, old_path),
        new=_facts(new, path),
    )
    kinds = {side.kind for side in (old, new) if side is not None}
    if kinds == {EntryKind.DIRECTORY}:
        return replace(diff, kind=DiffKind.FOLDER)
    if (old and old.hash) == (new and new.hash) and len(kinds) < 2:
        return replace(diff, kind=DiffKind.SAME)
    return _with_content(diff, old, new, limits)


class Compared(NamedTuple):
    """What `compare` takes."""

    old: Side | None
    new: Side | None
    path: str
    old_path: str | None
    limits: CompareLimits

    @property
    def size(self) -> int:
        return sum(len(side.content or b"") for side in (self.old, self.new) if side is not None)


def compare_all(files: Sequence[Compared]) -> list[FileDiff]:
    return [
        compare(old, new, path=path, old_path=old_path, limits=limits) for old, new, path, old_path, limits in files
    ]


def plain_text(content: bytes) -> bytes:
    """The bytes as they are; those of UTF-16 and 32, in which no line can be found, as UTF-8.

    Raises UnicodeDecodeError for wide text that is not what its mark says.
    """
    return content.decode(decode(content)[1].encoding).encode() if is_wide(content) else content


def _status(old: Side | None, new: Side | None, *, renamed: bool) -> DiffStatus:
    if old is None or new is None:
        return DiffStatus.UNCHANGED if old is new else DiffStatus.ADDED if old is None else DiffStatus.REMOVED
    if renamed:
        return DiffStatus.RENAMED
    same = (old.hash, old.kind, old.executable) == (new.hash, new.kind, new.executable)
    return DiffStatus.UNCHANGED if same else DiffStatus.CHANGED


def _facts(side: Side | None, path: str) -> Side | None:
    if side is None:
        return None
    mime = side.mime or (guessed_mime(path) if side.kind is EntryKind.FILE else None)
    return Side(content=None, size=side.size, hash=side.hash, kind=side.kind, executable=side.executable, mime=mime)


def _with_content(diff: FileDiff, old: Side | None, new: Side | None, limits: CompareLimits) -> FileDiff:
    sides = [_content(side) for side in (old, new)]
    contents = [b"" if side is None else side for side in sides]
    is_loaded = all(side is not None for side in sides)
    if not is_loaded or max(map(len, contents)) > limits.text_bytes:
        return replace(diff, notes=("It is too large to show.",))
    if any(map(is_binary, contents)):
        return diff
    try:
        texts = [plain_text(content) for content in contents]
    except UnicodeDecodeError as problem:
        return replace(diff, notes=(f"It is not valid {problem.encoding.upper()}.",))
    encoding = decode(contents[1])[1].encoding if is_wide(contents[1]) else "utf-8"
    if diff.kind_changed:
        return replace(diff, kind=DiffKind.TEXT, hunks=_replacement(*texts), encoding=encoding)
    hunks = hunks_between(texts[0], texts[1], context=limits.context)
    kinds = [side.kind for side in (old, new) if side is not None]
    notes = (_COARSE,) if is_coarse(*texts) else ()
    diff = replace(diff, kind=_ONE_FILE[kinds[0]], hunks=hunks, encoding=encoding, notes=notes)
    if diff.kind is DiffKind.LINK:
        return diff
    return _with_structure(diff, contents, limits)


def _content(side: Side | None) -> bytes | None:
    """Its bytes; None if they were not loaded."""
    return b"" if side is None or side.kind is EntryKind.DIRECTORY else side.content


def _replacement(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """A link's target and a file's text have no lines in common, whatever they say."""
    gone, came = lines_of(old), lines_of(new)
    lines = (*(b"-" + line for line in gone), *(b"+" + line for line in came))
    return (Hunk(int(bool(gone)), len(gone), int(bool(came)), len(came), b"", lines),) if lines else ()


def _with_structure(diff: FileDiff, contents: list[bytes], limits: CompareLimits) -> FileDiff:
    types = {file_type(side_path, content) for side_path, content in _named(diff, contents)}
    kind = types.pop()
    if (
        types
        or kind not in READERS
        or (kind is not FileType.NOTEBOOK and diff.status in (DiffStatus.ADDED, DiffStatus.REMOVED))
    ):
        return diff
    if max(map(len, contents)) > limits.structured_bytes:
        note = f"Compared as text: it is over {limits.structured_bytes >> 10} KiB."
        return replace(diff, notes=(*diff.notes, note))
    try:
        return _structured(diff, kind, contents, Budget(limits.seconds), limits)
    except UnicodeDecodeError:
        problem = "it is not valid UTF-8"
    except Unstructured as reason:
        problem = str(reason)
    except RecursionError:
        problem = "it is nested too deep"
    except BudgetSpent:
        problem = "there was no time left"
    return replace(diff, notes=(*diff.notes, f"Compared as text: {problem}."))


def _named(diff: FileDiff, contents: list[bytes]) -> list[tuple[str, bytes]]:
    pairs = zip((diff.old_path, diff.new_path), contents, strict=True)
    return [(path, content) for path, content in pairs if path is not None]


def _structured(
    diff: FileDiff, kind: FileType, contents: list[bytes], budget: Budget, limits: CompareLimits
) -> FileDiff:
    read = READERS[kind]
    nodes = [read(decode(content)[0], budget) for _, content in _named(diff, contents)]
    if kind is not FileType.NOTEBOOK:
        return replace(diff, kind=DiffKind.STRUCTURE, changes=changes_between(nodes[0], nodes[-1], budget))
    cells = [cells_of(node) for node in nodes]
    old_cells = [] if diff.old is None else cells[0]
    new_cells = [] if diff.new is None else cells[-1]
    changes = changes_between(without_cells(nodes[0]), without_cells(nodes[-1]), budget)
    found = tuple(cell_diffs(old_cells, new_cells, context=limits.context, budget=budget))
    return replace(diff, kind=DiffKind.NOTEBOOK, cells=found, changes=changes)
