"""The diff of two texts by libgit2, so that it is git's own. How long it takes: see `merge.steps`."""

import ctypes
from typing import Final, NamedTuple

from contextbase.merge.libgit2 import libgit2

__all__ = ["Edit", "diff"]

_FORCE_TEXT: Final = 1 << 20
_INDENT_HEURISTIC: Final = 1 << 18  # git's default: a change ends where a block does


class Edit(NamedTuple):
    """Lines `start:end` of the old text became lines `new_start:new_end` of the new one, counted from 0."""

    start: int
    end: int
    new_start: int
    new_end: int

    def shifted(self, lines: int, new_lines: int) -> "Edit":
        """The same edit in texts with that many lines more above."""
        return Edit(self.start + lines, self.end + lines, self.new_start + new_lines, self.new_end + new_lines)


class _Hunk(ctypes.Structure):
    _fields_ = (
        ("old_start", ctypes.c_int),
        ("old_lines", ctypes.c_int),
        ("new_start", ctypes.c_int),
        ("new_lines", ctypes.c_int),
        ("header_len", ctypes.c_size_t),
        ("header", ctypes.c_char * 128),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("flags", ctypes.c_uint32),
        ("ignore_submodules", ctypes.c_int),
        ("pathspec", ctypes.c_void_p),
        ("pathspec_count", ctypes.c_size_t),
        ("notify", ctypes.c_void_p),
        ("progress", ctypes.c_void_p),
        ("payload", ctypes.c_void_p),
        ("context_lines", ctypes.c_uint32),
        ("interhunk_lines", ctypes.c_uint32),
        ("id_abbrev", ctypes.c_uint16),
        ("max_size", ctypes.c_int64),
        ("old_prefix", ctypes.c_char_p),
        ("new_prefix", ctypes.c_char_p),
    )


_HunkCallback: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Hunk), ctypes.py_object)
libgit2.git_diff_buffers.argtypes = [
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.POINTER(_Options),
    ctypes.c_void_p,
    ctypes.c_void_p,
    _HunkCallback,
    ctypes.c_void_p,
    ctypes.py_object,
]
_OPTIONS: Final = _Options(version=1, flags=_FORCE_TEXT | _INDENT_HEURISTIC)


def _add_hunk(_file: object, hunk: "ctypes._Pointer[_Hunk]", found: list[Edit]) -> int:
    of = hunk[0]
    start = of.old_start - (of.old_lines > 0)
    new_start = of.new_start - (of.new_lines > 0)
    found.append(Edit(start, start + of.old_lines, new_start, new_start + of.new_lines))
    return 0


_add_hunk_callback: Final = _HunkCallback(_add_hunk)


def diff(old: bytes, new: bytes) -> list[Edit]:
    """What differs, in order. It cannot be stopped half-way."""
    found: list[Edit] = []
    texts = (old, len(old), None, new, len(new), None)
    code = libgit2.git_diff_buffers(*texts, _OPTIONS, None, None, _add_hunk_callback, None, found)
    if code != 0:
        raise MemoryError(f"libgit2 could not compare {len(old)} with {len(new)} bytes (code {code}).")
    return found
