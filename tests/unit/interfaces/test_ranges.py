"""Which part of a content a Range header asks for."""

import pytest

from contextbase.interfaces.api.ranges import Unsatisfiable, requested_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("", None),
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("BYTES = 2-5", (2, 6)),
        ("bytes=7-", (7, 10)),
        ("bytes=7-99", (7, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=0-1,4-5", None),
        ("lines=1-2", None),
        ("bytes=a-b", None),
        ("bytes=٣-٤", None),
    ],
)
def test_one_range_is_taken_and_what_is_none_means_the_whole(header: str | None, expected: object) -> None:
    assert requested_range(header, 10) == expected


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 10), ("bytes=-1", 0)]
)
def test_a_range_without_a_byte_in_it_cannot_be_given(header: str, size: int) -> None:
    with pytest.raises(Unsatisfiable):
        requested_range(header, size)
