"""Content hashes, uuids and the clock."""

import time
from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.errors import InvalidInput
from contextbase.ids import ContentHash, SystemClock, new_uuid

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_hash_of_nothing_is_sha256_of_nothing() -> None:
    assert str(ContentHash.of(b"")) == EMPTY


@given(st.binary(max_size=100))
def test_a_hash_reads_back_from_how_it_is_shown(content: bytes) -> None:
    content_hash = ContentHash.of(content)
    assert ContentHash.parse(str(content_hash)) == content_hash
    assert len(content_hash) == 32


@pytest.mark.parametrize(
    "text", ["", EMPTY[:-1], EMPTY + "0", EMPTY.upper(), EMPTY[:-1] + "g", EMPTY + "\n", " " + EMPTY]
)
def test_anything_but_64_lower_case_hex_digits_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="64 lower-case hex digits"):
        ContentHash.parse(text)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_digest_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidInput, match="32 bytes"):
        ContentHash(bytes(length))


def test_a_hash_in_a_debugger_is_short() -> None:
    assert repr(ContentHash.parse(EMPTY)) == "ContentHash(e3b0c44298fc…)"


def test_new_uuids_are_version_7_and_differ() -> None:
    made = [new_uuid() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {(uuid.version, uuid.variant) for uuid in made} == {(7, "specified in RFC 4122")}


def test_uuids_sort_by_the_millisecond_they_were_made_in(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for millisecond in (1, 2, 1_700_000_000_000, 1_700_000_000_001, 2**48 - 1):
        monkeypatch.setattr(time, "time_ns", lambda now=millisecond: now * 1_000_000)
        made.append(new_uuid())
    assert made == sorted(made)
    assert [uuid.int >> 80 for uuid in made][2] == 1_700_000_000_000


def test_the_clock_is_aware_and_in_utc() -> None:
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert now.utcoffset() == timedelta(0)
