"""The line merge: libgit2's, out of the pygit2 wheel, so that its verdicts are git's own.

pygit2 does not expose `git_merge_file`, hence ctypes. The calls release the GIL and share no state.
"""

import ctypes
import importlib.util
from ctypes.util import find_library
from itertools import pairwise
from pathlib import Path
from typing import Final

from contextbase.merge.model import Sides

__all__ = [
    "conflicting_pieces",
    "merge_lines",
    "merge_lines_union",
]

_FAVOR_UNION: Final = 3
_STYLE_ZDIFF3: Final = 256
_MARKER_SIZE: Final = 7
_MAX_MARKER_SIZE: Final = 0xFFFF


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


def merge_lines_union(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Everything merged that merges, at the conflicts the lines of ours and then those of theirs."""
    return _merge(base, ours, theirs, _Options(version=1, favor=_FAVOR_UNION))[0]


def conflicting_pieces(base: bytes, ours: bytes, theirs: bytes) -> list[bytes | Sides]:
    """The whole text of a line merge that conflicts: agreed text, and the stretches the sides disagree on."""
    size = _unused_marker_size(base, ours, theirs)
    if size > _MAX_MARKER_SIZE:
        return [Sides(base, ours, theirs)]
    text, _ = _merge(base, ours, theirs, _Options(version=1, flags=_STYLE_ZDIFF3, marker_size=size))
    marks = [b"\n" + character * size for character in (b"<", b"|", b"=", b">")]
    pieces: list[bytes | Sides] = []
    rest = b"\n" + text
    while (start := rest.find(marks[0])) >= 0:
        pieces.append(rest[1 : start + 1])
        sections = []
        for mark, next_mark in pairwise(marks):
            content = rest.index(b"\n", start + len(mark))
            start = rest.index(next_mark, content)
            sections.append(rest[content + 1 : start + 1])
        rest = rest[rest.index(b"\n", start + size) :]
        in_ours, in_base, in_theirs = sections
        pieces.append(Sides(in_base, in_ours, in_theirs))
    last = pieces[-1]
    if rest != b"\n" or not isinstance(last, Sides):
        return [*pieces, rest[1:]]
    # At the end of the file a side without a final newline was given one, to set it apart from the marker.
    whole = (base, ours, theirs)
    ends = [part if side.endswith(b"\n") else part[:-1] for part, side in zip(last, whole, strict=True)]
    return [*pieces[:-1], Sides(*ends)]


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
