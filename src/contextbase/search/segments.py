"""Segments of the index: posting lists of blobs whose numbers follow each other, written once and merged later. Pure.

A posting list has the numbers of the blobs with a gram: the last 16 bits of each, in order. The rest of a number is the
segment's window: no segment goes over the end of one. So lists are merged by putting them one after the other.
"""

import struct
import sys
from array import array
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from contextbase.search.grams import grams_of
from contextbase.search.text import text_of

__all__ = [
    "MOST_BLOBS",
    "Segment",
    "SegmentRows",
    "merge_wanted",
    "numbers_in",
    "room_in_window",
    "segment_rows",
    "without",
]

MOST_BLOBS: Final = 16_384  # in a segment, however often it is merged
_LOW: Final = 0xFFFF
_FEWEST_MERGED: Final = 4
_MOST_MERGED: Final = 16
_COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_COPY_END: Final = b"\xff\xff"
_ROW: Final = struct.Struct(">hiiiii")  # of binary COPY: three fields, the first two of four bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    number: int
    first: int  # blob
    last: int

    @property
    def blobs(self) -> int:
        return self.blobs_through(self)

    def blobs_through(self, later: "Segment") -> int:
        return later.last - self.first + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentRows:
    """What is stored of a new segment."""

    postings: bytes  # rows of search_postings, as PostgreSQL's binary COPY reads them
    is_text: tuple[bool, ...]  # of each content


def segment_rows(number: int, first: int, contents: Sequence[bytes]) -> SegmentRows:
    """A segment of these contents, numbered from `first`; runs in a worker process."""
    lists: dict[int, array[int]] = {}
    is_text = []
    for blob, content in enumerate(contents, first):
        text = text_of(content)
        is_text.append(text is not None)
        for gram in grams_of(text or b""):
            lists.setdefault(gram, array("H")).append(blob & _LOW)
    rows = [_COPY_HEADER]
    for gram, numbers in sorted(lists.items()):
        data = _as_stored(numbers)
        rows += (_ROW.pack(3, 4, number, 4, gram, len(data)), data)
    rows.append(_COPY_END)
    return SegmentRows(postings=b"".join(rows), is_text=tuple(is_text))


def room_in_window(first: int) -> int:
    """How many blobs a segment that begins with this one can have."""
    return (first | _LOW) - first + 1


def numbers_in(segment: Segment, ids: bytes) -> list[int]:
    """A stored list as the numbers of blobs."""
    base = segment.first & ~_LOW
    return [base | low for low in _read(ids)]


def without(ids: bytes, gone: AbstractSet[int]) -> bytes | None:
    """A stored list without these numbers; None if it has none of them."""
    numbers = _read(ids)
    low = {number & _LOW for number in gone}
    return None if low.isdisjoint(numbers) else _as_stored(array("H", [one for one in numbers if one not in low]))


def merge_wanted(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Neighbours that should become one segment, given all of them in order; empty if none should.

    None of them is larger than all others together. So a blob is written again only when its segment becomes at least
    twice as large, and of the segments that are left the older are ever larger."""
    for start in reversed(range(len(segments))):
        largest = 0
        for end in range(start, min(start + _MOST_MERGED, len(segments))):
            total = segments[start].blobs_through(segments[end])
            if segments[start].first | _LOW != segments[end].first | _LOW or total > MOST_BLOBS:
                break
            largest = max(largest, segments[end].blobs)
            if end - start + 1 >= _FEWEST_MERGED and 2 * largest <= total:
                return segments[start : end + 1]
    return ()


def _as_stored(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _read(ids: bytes) -> "array[int]":
    numbers = array("H", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
