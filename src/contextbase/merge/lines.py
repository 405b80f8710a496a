"""The line merge: libgit2's, out of the pygit2 wheel, so that its verdicts are git's own.

pygit2 does not expose `git_merge_file`, hence ctypes. The calls release the GIL and share no state.
"""

import ctypes
import importlib.util
from ctypes.util import find_library
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "LineConflict",
    "line_conflicts",
    "merge_lines",
    "merge_lines_for_ours",
    "merge_lines_union",
]

_FAVOR_OURS: Final = 1
_FAVOR_UNION: Final = 3
_STYLE_ZDIFF3: Final = 256
_MARKER_SIZE: Final = 7
_MAX_MARKER_SIZE: Final = 0xFFFF


class LineConflict(NamedTuple):
    """A stretch of lines both sides changed; `first_line` counts from 1 in the text with ours at every conflict."""

    first_line: int
    base: bytes
    ours: bytes
    theirs: bytes


class _Input(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("ptr", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("path", ctypes.c_char_p),
        ("mode", ctypes.c_uint),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("ancestor_label", ctypes.c_char_p),
        ("our_label", ctypes.c_char_p),
        ("their_label", ctypes.c_char_p),
        ("favor", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("marker_size", ctypes.c_ushort),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("automergeable", ctypes.c_uint),
        ("path", ctypes.c_char_p),
        ("mode", ctypes.c_uint),
        ("ptr", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
    )


def _load() -> ctypes.CDLL:
    spec = importlib.util.find_spec("pygit2")
    places: list[str] = []
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        for folder in (package.parent / "pygit2.libs", package / ".dylibs", package):
            places += sorted(str(file) for file in folder.glob("libgit2*") if "_libgit2" not in file.name)
    places += filter(None, [find_library("git2")])
    if not places:
        raise ImportError("libgit2 was not found in the pygit2 wheel nor on the system; reinstall pygit2 from a wheel.")
    library = ctypes.CDLL(places[0])
    library.git_libgit2_init()
    library.git_merge_file.argtypes = [ctypes.POINTER(_Result), *[ctypes.POINTER(_Input)] * 3, ctypes.POINTER(_Options)]
    library.git_merge_file_result_free.argtypes = [ctypes.POINTER(_Result)]
    library.git_merge_file_result_free.restype = None
    return library


_libgit2: Final = _load()


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The merged text, or None where `git merge-file` reports a conflict."""
    text, is_clean = _merge(base, ours, theirs, _Options(version=1, marker_size=_MARKER_SIZE))
    return text if is_clean else None


def merge_lines_for_ours(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Everything merged that merges, ours at the conflicts."""
    return _merge(base, ours, theirs, _Options(version=1, favor=_FAVOR_OURS))[0]


def merge_lines_union(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Everything merged that merges, at the conflicts the lines of ours and then those of theirs."""
    return _merge(base, ours, theirs, _Options(version=1, favor=_FAVOR_UNION))[0]


def line_conflicts(base: bytes, ours: bytes, theirs: bytes) -> list[LineConflict]:
    """The conflicts of a line merge, in order."""
    size = _unused_marker_size(base, ours, theirs)
    if size > _MAX_MARKER_SIZE:
        return [LineConflict(1, base, ours, theirs)]
    text, _ = _merge(base, ours, theirs, _Options(version=1, flags=_STYLE_ZDIFF3, marker_size=size))
    opening, middle, closing = b"<" * size, b"|" * size, b">" * size
    divider = b"=" * size
    conflicts: list[LineConflict] = []
    line_number = first_line = 1
    sections: dict[bytes, list[bytes]] = {}
    current: bytes | None = None
    for line in _split_at_newlines(text):
        mark = line.partition(b" ")[0].rstrip(b"\r\n")
        if mark == opening:
            first_line, current, sections = line_number, opening, {opening: [], middle: [], divider: []}
        elif current is not None and mark in (middle, divider):
            current = mark
        elif current is not None and mark == closing:
            current = None
            our_lines, base_lines, their_lines = (b"".join(sections[key]) for key in (opening, middle, divider))
            conflicts.append(LineConflict(first_line, base_lines, our_lines, their_lines))
        elif current is not None:
            sections[current].append(line)
            line_number += current == opening
        else:
            line_number += 1
    return conflicts


def _split_at_newlines(text: bytes) -> list[bytes]:
    pieces = text.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + [piece for piece in pieces[-1:] if piece]


def _unused_marker_size(*texts: bytes) -> int:
    size = 40
    while any(character * size in text for text in texts for character in (b"<", b"|", b"=", b">")):
        size *= 2
    return size


def _merge(base: bytes, ours: bytes, theirs: bytes, options: _Options) -> tuple[bytes, bool]:
    result = _Result()
    inputs = [_Input(version=1, ptr=text, size=len(text)) for text in (base, ours, theirs)]
    code = _libgit2.git_merge_file(result, *inputs, options)
    try:
        if code != 0:
            raise MemoryError(f"libgit2 could not merge {len(base)} + {len(ours)} + {len(theirs)} bytes (code {code}).")
        text = ctypes.string_at(result.ptr, result.len) if result.len else b""
        return text, bool(result.automergeable)
    finally:
        _libgit2.git_merge_file_result_free(result)
