"""The line merge: libgit2's, so that its verdicts are git's own. The calls release the GIL and share no state."""

import ctypes
from typing import Final

from contextbase.merge.libgit2 import libgit2
from contextbase.merge.model import Sides
from contextbase.merge.shared import alike
from contextbase.merge.steps import line_steps

__all__ = [
    "can_be_merged",
    "conflicting_pieces",
    "merge_lines",
    "merge_lines_union",
    "merge_or_contest",
]

_FAVOR_UNION: Final = 3
_STYLE_DIFF3: Final = 2
_STYLE_ZDIFF3: Final = 256
_MARKER_SIZE: Final = 7
_MAX_MARKER_SIZE: Final = 0xFFFF
_LARGE: Final = 1 << 20
_CHUNK: Final = 1 << 14
_MOST_STEPS: Final = 6_000_000  # about 0.2 s: a merge that conflicts is made twice
_MOST_LINES: Final = 100_000  # of a side, between the first and the last that differ: to read them takes as long


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


libgit2.git_merge_file.argtypes = [ctypes.POINTER(_Result), *[ctypes.POINTER(_Input)] * 3, ctypes.POINTER(_Options)]
libgit2.git_merge_file_result_free.argtypes = [ctypes.POINTER(_Result)]
libgit2.git_merge_file_result_free.restype = None


def can_be_merged(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Whether the texts differ so little that a merge by line cannot take long. Depends on the texts alone."""
    if max(len(base), len(ours), len(theirs)) > _MOST_LINES:
        head, tail = alike(base, ours, theirs)
        if max(side.count(b"\n", head, len(side) - tail) for side in (base, ours, theirs)) > _MOST_LINES:
            return False
    left = _MOST_STEPS
    for old, new in ((base, ours), (base, theirs)) if base else ((ours, theirs),):
        left -= line_steps(old, new, enough=left // 2)
    return left >= 0


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The merged text, or None where `git merge-file` reports a conflict. Ask `can_be_merged` first."""
    text, is_clean = _merge(base, ours, theirs, _Options(version=1, marker_size=_MARKER_SIZE))
    return text if is_clean else None


def merge_lines_union(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Everything merged that merges, at the conflicts the lines of ours and then those of theirs."""
    return _merge(base, ours, theirs, _Options(version=1, favor=_FAVOR_UNION))[0]


def conflicting_pieces(base: bytes, ours: bytes, theirs: bytes) -> list[bytes | Sides]:
    """The whole text of a line merge that conflicts: agreed text, and the stretches the sides disagree on."""
    head = _common_head(base, ours, theirs)
    tail = _common_tail(base[head:], ours[head:], theirs[head:])
    pieces = _pieces_between(*(side[head : len(side) - tail] for side in (base, ours, theirs)))
    if not any(isinstance(piece, Sides) for piece in pieces):
        return _pieces_between(base, ours, theirs)
    return [piece for piece in (base[:head], *pieces, base[len(base) - tail :]) if piece]


def merge_or_contest(base: bytes, ours: bytes, theirs: bytes) -> bytes | list[bytes | Sides]:
    """The merged text; or, where `git merge-file` reports a conflict, all of it: what merges, and what is contested
    with all the lines of it that any side has."""
    size = _unused_marker_size(base, ours, theirs)
    if size > _MAX_MARKER_SIZE:
        return [Sides(base, ours, theirs)]
    text, is_clean = _merge(base, ours, theirs, _Options(version=1, flags=_STYLE_DIFF3, marker_size=size))
    return text if is_clean else _marked_pieces(text, size, (base, ours, theirs))


def _common_head(*sides: bytes) -> int:
    """How many bytes of whole lines all sides of a large text begin with; 0 for a small one, which needs no haste."""
    return sides[0].rfind(b"\n", 0, _agreement(*sides)) + 1


def _common_tail(*sides: bytes) -> int:
    backwards = [side[::-1] for side in sides]
    return max(0, backwards[0].rfind(b"\n", 0, _agreement(*backwards)))


def _agreement(first: bytes, *others: bytes) -> int:
    """A number of bytes that all begin with alike, if they are large."""
    shortest = min(len(first), *map(len, others))
    at = 0
    while at + _CHUNK <= shortest and shortest > _LARGE:
        if any(first[at : at + _CHUNK] != other[at : at + _CHUNK] for other in others):
            break
        at += _CHUNK
    return at


def _pieces_between(base: bytes, ours: bytes, theirs: bytes) -> list[bytes | Sides]:
    size = _unused_marker_size(base, ours, theirs)
    if size > _MAX_MARKER_SIZE:
        return [Sides(base, ours, theirs)]
    merged, _ = _merge(base, ours, theirs, _Options(version=1, flags=_STYLE_ZDIFF3, marker_size=size))
    return _marked_pieces(merged, size, (base, ours, theirs))


def _marked_pieces(merged: bytes, size: int, whole: tuple[bytes, bytes, bytes]) -> list[bytes | Sides]:
    """A merge with conflict markers of that size, taken apart; `whole`: the texts that were merged."""
    text = b"\n" + merged
    marks = [b"\n" + character * size for character in (b"<", b"|", b"=", b">")]
    pieces: list[bytes | Sides] = []
    at = 0  # where a newline stands, after which the next piece begins
    while (mark_at := text.find(marks[0], at)) >= 0:
        pieces.append(text[at + 1 : mark_at + 1])
        sections = []
        for next_mark in marks[1:]:
            start = text.index(b"\n", mark_at + 1)
            mark_at = text.index(next_mark, start)
            sections.append(text[start + 1 : mark_at + 1])
        at = text.index(b"\n", mark_at + 1)
        in_ours, in_base, in_theirs = sections
        pieces.append(Sides(in_base, in_ours, in_theirs))
    last = pieces[-1] if pieces else b""
    if at + 1 < len(text) or not isinstance(last, Sides):
        return [*pieces, text[at + 1 :]]
    # At the end of the file a side without a final newline was given one, to set it apart from the marker.
    ends = [part if side.endswith(b"\n") else part[:-1] for part, side in zip(last, whole, strict=True)]
    return [*pieces[:-1], Sides(*ends)]


def _unused_marker_size(*texts: bytes) -> int:
    size = 96  # what is long is soon found to be missing
    while any(character * size in text for text in texts for character in (b"<", b"|", b"=", b">")):
        size *= 2
    return size


def _merge(base: bytes, ours: bytes, theirs: bytes, options: _Options) -> tuple[bytes, bool]:
    result = _Result()
    inputs = [_Input(version=1, ptr=text, size=len(text)) for text in (base, ours, theirs)]
    code = libgit2.git_merge_file(result, *inputs, options)
    try:
        if code != 0:
            raise MemoryError(f"libgit2 could not merge {len(base)} + {len(ours)} + {len(theirs)} bytes (code {code}).")
        text = ctypes.string_at(result.ptr, result.len) if result.len else b""
        return text, bool(result.automergeable)
    finally:
        libgit2.git_merge_file_result_free(result)
