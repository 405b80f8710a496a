"""A diff applied: what `compare` found between two sides makes the one into the other."""

from dataclasses import replace

from contextbase.compare.engine import plain_text
from contextbase.compare.model import CellDiff, DiffKind, FileDiff, Side, ValueChangeKind
from contextbase.compare.text import apply_hunks
from contextbase.errors import Conflict
from contextbase.ids import ContentHash
from contextbase.merge import EntryKind

__all__ = ["apply", "apply_cells"]


def apply(old: Side | None, diff: FileDiff) -> Side | None:
    """The new side, None if the file is gone. Of a binary it names the content by its hash, without the bytes.

    Raises `Conflict` if `old` is not what the diff was made from.
    """
    if (old is None) != (diff.old is None) or (old and diff.old and old.kind is not diff.old.kind):
        raise Conflict(f"What stands at {diff.old_path} is not what the diff was made from. Compare them again.")
    if diff.new is None:
        return None
    if diff.kind is DiffKind.FOLDER or diff.new.kind is EntryKind.DIRECTORY:
        return diff.new
    if diff.kind in (DiffKind.BINARY, DiffKind.SAME):
        if old is not None and diff.old is not None and old.hash != diff.old.hash:
            raise Conflict(f"{diff.old_path} is not the file the diff was made from. Compare them again.")
        return replace(diff.new, content=old.content) if old and diff.kind is DiffKind.SAME else diff.new
    before = b"" if old is None or old.content is None else plain_text(old.content)
    content = apply_hunks(before, diff.hunks)
    if diff.encoding != "utf-8":
        content = content.decode().encode(diff.encoding)
    return replace(diff.new, content=content, size=len(content), hash=ContentHash.of(content))


def apply_cells(sources: list[str], cells: tuple[CellDiff, ...]) -> list[str]:
    """The sources of a notebook's cells, made into those of the new one."""
    left = list(sources)
    carried: dict[int, str] = {}
    gone: list[int] = []
    for cell in cells:
        before = "" if cell.old_position is None else sources[cell.old_position]
        after = apply_hunks(before.encode("utf-8", "surrogatepass"), cell.hunks).decode("utf-8", "surrogatepass")
        if cell.kind is ValueChangeKind.CHANGED and cell.old_position is not None:
            left[cell.old_position] = after
            continue
        if cell.old_position is not None:
            gone.append(cell.old_position)
        if cell.new_position is not None:
            carried[cell.new_position] = after
    for position in sorted(gone, reverse=True):
        del left[position]
    for position in sorted(carried):
        left.insert(position, carried[position])
    return left
