"""Segments: which are merged, and what a posting list holds."""

from random import Random

import pytest

from contextbase.search.grams import grams_of
from contextbase.search.segments import (
    MOST_BLOBS,
    Segment,
    merge_wanted,
    numbers_in,
    room_in_window,
    segment_rows,
    without,
)


def merged_as_they_come(sizes: list[int]) -> tuple[list[Segment], int]:
    """The segments that are left, and how many blobs were written again."""
    segments: list[Segment] = []
    first, written = 1, 0
    for number, wanted in enumerate(sizes):
        size = min(wanted, room_in_window(first))
        segments.append(Segment(number=number, first=first, last=first + size - 1))
        first += size
        while merged := merge_wanted(segments):
            assert [segment in segments for segment in merged] == [True] * len(merged)
            start = segments.index(merged[0])
            assert segments[start : start + len(merged)] == list(merged)  # neighbours
            one = Segment(number=-written, first=merged[0].first, last=merged[-1].last)
            assert one.first >> 16 == one.last >> 16
            assert one.blobs <= MOST_BLOBS
            segments[start : start + len(merged)] = [one]
            written += one.blobs
    return segments, written


@pytest.mark.parametrize("largest", [1, 5, 300, 1000])
def test_few_segments_are_left_and_each_blob_is_written_a_few_times(largest: int) -> None:
    random = Random(largest)
    sizes = [random.randint(1, largest) for _ in range(1000)]
    segments, written = merged_as_they_come(sizes)
    blobs = segments[-1].last
    assert len(segments) <= 10 + 10 * (blobs >> 16)
    assert written <= 8 * blobs


def test_a_list_holds_the_last_bits_of_numbers() -> None:
    segment = Segment(number=1, first=0x2_FFF0, last=0x2_FFFF)
    rows = segment_rows(1, 0x2_FFFE, [b"abc", b"abc"]).postings
    [gram] = grams_of(b"abc")
    assert rows.count(gram.to_bytes(4, "big")) == 1
    ids = rows[-2 - 4 : -2]
    assert ids == b"\xfe\xff\xff\xff"
    assert numbers_in(segment, ids) == [0x2_FFFE, 0x2_FFFF]


def test_numbers_are_taken_out() -> None:
    ids = b"\x01\x00\x02\x00\x00\x01"
    assert without(ids, {2}) == b"\x01\x00\x00\x01"
    assert without(ids, {1, 2, 256}) == b""
    assert without(ids, {3}) is None


def test_which_contents_are_text() -> None:
    assert segment_rows(1, 1, [b"text", b"\0", b""]).is_text == (True, False, True)


def test_no_gram_goes_over_the_end_of_a_line() -> None:
    assert {gram.to_bytes(3, "big") for gram in grams_of(b"ABC\ndef")} == {b"abc", b"def"}
