"""A diff as text: git's patch format, a list of changed values and cells, and plain dicts for JSON."""

import re
from collections.abc import Iterator
from typing import Any, Final

from contextbase.compare.model import CellDiff, DiffKind, FileDiff, Hunk, Side, ValueChange, ValueChangeKind
from contextbase.compare.values import Value, pointer
from contextbase.merge import EntryKind

__all__ = ["render_changes", "render_patch", "render_unified", "to_dict"]

_UNPLAIN: Final = re.compile(rb'["\\\x00-\x1f\x7f-\xff]')
_SHOWN: Final = 200  # characters of a value
_MARKS: Final = {
    ValueChangeKind.ADDED: "+",
    ValueChangeKind.REMOVED: "-",
    ValueChangeKind.CHANGED: "~",
    ValueChangeKind.MOVED: ">",
}


def render_patch(diff: FileDiff) -> bytes:
    """The diff in git's format, byte for byte: `git apply` takes it, unless it is of a folder, a binary or UTF-16."""
    if diff.kind is DiffKind.FOLDER:
        return f"Folder {diff.status}: {diff.path}\n".encode()
    if diff.kind_changed:
        return b"".join((*_file(diff, diff.old, None), *_file(diff, None, diff.new)))
    return b"".join(_file(diff, diff.old, diff.new))


def render_unified(diff: FileDiff) -> str:
    """As `render_patch`, for people: bytes that are not UTF-8 are shown as such, notes stand below."""
    notes = "".join(f"# {note}\n" for note in diff.notes)
    return render_patch(diff).decode("utf-8", "replace") + notes


def render_changes(diff: FileDiff) -> str:
    """The changed values and cells, one a line, source lines below; empty if the diff is of lines alone."""
    lines = [_change_line(change) for change in diff.changes]
    for cell in diff.cells:
        lines.append(_cell_line(cell))
        hunks = b"".join(_hunk(hunk) for hunk in cell.hunks).decode("utf-8", "replace")
        lines += ["    " + line for line in hunks.splitlines()]
    return "".join(line + "\n" for line in lines)


def to_dict(diff: FileDiff) -> dict[str, Any]:
    """For JSON; a line or value that is not UTF-8 has replacement characters in it."""
    return {
        "path": diff.path,
        "old_path": diff.old_path,
        "new_path": diff.new_path,
        "status": diff.status.value,
        "kind": diff.kind.value,
        "old": _side_dict(diff.old),
        "new": _side_dict(diff.new),
        "hunks": [_hunk_dict(hunk) for hunk in diff.hunks],
        "changes": [_change_dict(change) for change in diff.changes],
        "cells": [_cell_dict(cell) for cell in diff.cells],
        "notes": list(diff.notes),
    }


def _file(diff: FileDiff, old: Side | None, new: Side | None) -> Iterator[bytes]:
    """A patch of one file; a file that became a link is one that went and one that came."""
    old_name, new_name = _name("a/", diff.old_path or diff.path), _name("b/", diff.new_path or diff.path)
    if (old or new or Side.folder()).kind is EntryKind.DIRECTORY:
        return
    yield b"diff --git %s %s\n" % (old_name, new_name)
    if old is None and new is not None:
        yield b"new file mode %s\n" % _mode(new)
    elif new is None and old is not None:
        yield b"deleted file mode %s\n" % _mode(old)
    elif old is not None and new is not None:
        if _mode(old) != _mode(new):
            yield b"old mode %s\nnew mode %s\n" % (_mode(old), _mode(new))
        if diff.old_path != diff.new_path:
            yield b"rename from %s\nrename to %s\n" % (_name("", diff.old_path or ""), _name("", diff.new_path or ""))
    old_name = b"/dev/null" if old is None else old_name
    new_name = b"/dev/null" if new is None else new_name
    if diff.kind is DiffKind.BINARY:
        if old is None or new is None or old.hash != new.hash:
            yield b"Binary files %s and %s differ: %s -> %s\n" % (old_name, new_name, _facts(old), _facts(new))
        return
    hunks = [_only(hunk, old, new) for hunk in diff.hunks] if diff.kind_changed else diff.hunks
    if hunks:
        yield b"--- %s\n+++ %s\n" % (_ended(old_name), _ended(new_name))
    for hunk in hunks:
        yield _hunk(hunk)


def _only(hunk: Hunk, old: Side | None, new: Side | None) -> Hunk:
    """The part of a replacement that is about the side that is there."""
    if old is None:
        return hunk._replace(old_start=0, old_count=0, lines=tuple(line for line in hunk.lines if line[:1] == b"+"))
    if new is None:
        return hunk._replace(new_start=0, new_count=0, lines=tuple(line for line in hunk.lines if line[:1] == b"-"))
    return hunk


def _hunk(hunk: Hunk) -> bytes:
    lines = [line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in hunk.lines]
    return b"".join((_header(hunk), b"\n", *lines))


def _header(hunk: Hunk) -> bytes:
    ranges = (_range(hunk.old_start, hunk.old_count), _range(hunk.new_start, hunk.new_count))
    return b"@@ -%s +%s @@" % ranges + (b" " + hunk.section if hunk.section else b"")


def _range(start: int, count: int) -> bytes:
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def _name(side: str, path: str) -> bytes:
    """A path as git writes it: in quotes if it holds anything unusual."""
    name = (side + path).encode()
    if not _UNPLAIN.search(name):
        return name
    return b'"' + _UNPLAIN.sub(_escaped, name) + b'"'


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"\\" + match[0] if match[0] in b'"\\' else b"\\%03o" % match[0][0]


def _ended(name: bytes) -> bytes:
    """git marks the end of a name that has blanks in it."""
    return name + b"\t" if b" " in name and name[:1] != b'"' else name


def _mode(side: Side) -> bytes:
    if side.kind is EntryKind.SYMLINK:
        return b"120000"
    return b"100755" if side.executable else b"100644"


def _facts(side: Side | None) -> bytes:
    if side is None:
        return b"nothing"
    return f"{side.size} bytes, {side.mime}, {side.hash}".encode()


def _change_line(change: ValueChange) -> str:
    mark = _MARKS[change.kind]
    place = pointer(change.new_path if change.new_path is not None else change.old_path or ())
    if change.kind is ValueChangeKind.MOVED:
        return f"{mark} {place} moved from {pointer(change.old_path or ())}"
    values = [_short(value) for value in (change.old, change.new) if value is not None]
    return f"{mark} {place or '(the whole)'}: {' -> '.join(values)}"


def _cell_line(cell: CellDiff) -> str:
    name = (
        cell.cell
        if cell.cell is not None
        else f"at {cell.old_position if cell.new_position is None else cell.new_position}"
    )
    said = [f"moved from {cell.old_position} to {cell.new_position}"] if cell.kind is ValueChangeKind.MOVED else []
    said += [f"{what} changed" for what in _changed_parts(cell)]
    return f"{_MARKS[cell.kind]} {cell.type} cell {name}" + (f": {', '.join(said)}" if said else "")


def _changed_parts(cell: CellDiff) -> list[str]:
    parts = {"type": cell.type_changed, "outputs": cell.outputs_changed, "metadata": cell.metadata_changed}
    return [name for name, has_changed in parts.items() if has_changed]


def _short(value: Value) -> str:
    text = " ".join(value.text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _side_dict(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "kind": side.kind.value,
        "size": side.size,
        "hash": None if side.hash is None else str(side.hash),
        "mime": side.mime,
        "executable": side.executable,
    }


def _hunk_dict(hunk: Hunk) -> dict[str, Any]:
    return {
        "header": _header(hunk).decode("utf-8", "replace"),
        "old_start": hunk.old_start,
        "old_count": hunk.old_count,
        "new_start": hunk.new_start,
        "new_count": hunk.new_count,
        "lines": [line.decode("utf-8", "replace") for line in hunk.lines],
    }


def _change_dict(change: ValueChange) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "old_pointer": None if change.old_path is None else pointer(change.old_path),
        "new_pointer": None if change.new_path is None else pointer(change.new_path),
        "old": None if change.old is None else change.old.text,
        "new": None if change.new is None else change.new.text,
    }


def _cell_dict(cell: CellDiff) -> dict[str, Any]:
    return {
        "kind": cell.kind.value,
        "cell": cell.cell,
        "type": cell.type,
        "old_position": cell.old_position,
        "new_position": cell.new_position,
        "changed": _changed_parts(cell),
        "hunks": [_hunk_dict(hunk) for hunk in cell.hunks],
    }
