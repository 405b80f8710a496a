"""Rows are read from PostgreSQL's binary COPY whatever is in them and however the stream is cut."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.backup.rows import CopyRows, Row
from contextbase.errors import Damaged

fields = st.none() | st.binary(max_size=40) | st.sampled_from([b"\xff\xff", b"\xff\xff\xff\xff", b"PGCOPY\n"])
tables = st.integers(0, 5).flatmap(lambda width: st.lists(st.tuples(*[fields] * width), max_size=20))


def as_copied(rows: list[Row]) -> bytes:
    """As PostgreSQL's documentation describes it."""
    out = bytearray(b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0))
    for row in rows:
        out += struct.pack(">h", len(row))
        for field in row:
            out += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return bytes(out + struct.pack(">h", -1))


@given(tables, st.lists(st.integers(1, 50), min_size=1))
def test_rows_come_back_whole_however_the_stream_is_cut(rows: list[Row], lengths: list[int]) -> None:
    stream, reader, found = as_copied(rows), CopyRows(), []
    turn = 0
    while stream:
        length = lengths[turn % len(lengths)]
        found += reader.feed(stream[:length])
        stream, turn = stream[length:], turn + 1
    reader.finish()
    assert found == rows


@given(tables, st.integers(1, 1000))
def test_a_stream_that_ends_early_is_damaged(rows: list[Row], cut: int) -> None:
    stream = as_copied(rows)
    reader = CopyRows()
    reader.feed(stream[: len(stream) - min(cut, len(stream))])
    with pytest.raises(Damaged):
        reader.finish()
