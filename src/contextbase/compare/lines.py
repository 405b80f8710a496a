"""Which lines differ between two texts, by libgit2's diff, so that the answer is git's own."""

import ctypes
from functools import lru_cache
from io import BytesIO
from itertools import chain
from typing import Final, NamedTuple

from contextbase.merge.libgit2 import libgit2

__all__ = ["Edit", "line_edits", "quick_edits"]

_FORCE_TEXT: Final = 1 << 20
_INDENT_HEURISTIC: Final = 1 << 18  # git's default: a change ends where a block does
_LARGE: Final = 32 << 10
_MARGIN: Final = 8 << 10


class Edit(NamedTuple):
    """Lines `start:end` of the old text became lines `new_start:new_end` of the new one, counted from 0."""

    start: int
    end: int
    new_start: int
    new_end: int


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


def line_edits(old: bytes, new: bytes) -> list[Edit]:
    """What git would show as changed, in order."""
    if old == new:
        return []
    # A diff shifts its edits along equal lines around them, to where people expect them: hence the margin.
    head, tail = _alike(old, new, margin=_MARGIN) if len(old) > _LARGE and len(new) > _LARGE else (0, 0)
    found = _diff(old[head : len(old) - tail], new[head : len(new) - tail])
    return _shifted(found, old.count(b"\n", 0, head))


def quick_edits(old: bytes, new: bytes) -> list[Edit]:
    """As `line_edits`, many times faster; of equal neighbours another one may count as new."""
    if old == new:
        return []
    head, tail = _alike(old, new, margin=0)
    skipped = old.count(b"\n", 0, head)
    old_lines = BytesIO(old[head : len(old) - tail]).readlines()
    new_lines = BytesIO(new[head : len(new) - tail]).readlines()
    if not old_lines or not new_lines or len(old_lines) == len(new_lines) == 1:
        return [Edit(skipped, skipped + len(old_lines), skipped, skipped + len(new_lines))]
    return _shifted(_diff(*_abridged(old_lines, new_lines)), skipped)


def _abridged(*texts: list[bytes]) -> list[bytes]:
    """The texts with a short name for each line: libgit2 hashes what it compares, which takes longer than comparing."""
    lines = dict.fromkeys(chain.from_iterable(texts))
    names = dict(zip(lines, _short_names(len(lines).bit_length()), strict=False))
    return [b"".join(map(names.__getitem__, text)) for text in texts]


@lru_cache
def _short_names(bits: int) -> tuple[bytes, ...]:
    """As many as can be counted in that many bits: made once, because making them takes longer than their use."""
    return tuple(b"%x\n" % number for number in range(1 << bits))


def _shifted(edits: list[Edit], skipped: int) -> list[Edit]:
    if not skipped:
        return edits
    return [Edit(start + skipped, end + skipped, at + skipped, until + skipped) for start, end, at, until in edits]


def _alike(old: bytes, new: bytes, margin: int) -> tuple[int, int]:
    """How many bytes of whole lines both texts begin and end with, less a margin."""
    head = old.rfind(b"\n", 0, max(0, _common_prefix(old, new) - margin)) + 1
    longest = min(len(old), len(new)) - head
    tail = max(0, _common_suffix(old, new, longest) - margin)
    start = len(old) - tail
    if tail and not (_starts_line(old, start) and _starts_line(new, len(new) - tail)):
        after = old.find(b"\n", start) + 1
        tail = len(old) - after if after else 0
    return head, tail


def _starts_line(text: bytes, at: int) -> bool:
    return at == 0 or text[at - 1 : at] == b"\n"


def _common_prefix(old: bytes, new: bytes) -> int:
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(old: bytes, new: bytes, longest: int) -> int:
    low, high = 0, longest
    old_end, new_end = len(old), len(new)
    while low < high:
        middle = (low + high + 1) // 2
        if old[old_end - middle : old_end - low] == new[new_end - middle : new_end - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _add_hunk(_file: object, hunk: "ctypes._Pointer[_Hunk]", found: list[Edit]) -> int:
    of = hunk[0]
    start = of.old_start - (of.old_lines > 0)
    new_start = of.new_start - (of.new_lines > 0)
    found.append(Edit(start, start + of.old_lines, new_start, new_start + of.new_lines))
    return 0


_add_hunk_callback: Final = _HunkCallback(_add_hunk)


def _diff(old: bytes, new: bytes) -> list[Edit]:
    found: list[Edit] = []
    texts = (old, len(old), None, new, len(new), None)
    code = libgit2.git_diff_buffers(*texts, _OPTIONS, None, None, _add_hunk_callback, None, found)
    if code != 0:
        raise MemoryError(f"libgit2 could not compare {len(old)} with {len(new)} bytes (code {code}).")
    return found
