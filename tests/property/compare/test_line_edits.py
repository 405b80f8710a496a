"""Whatever the texts, what is not in an edit is the same on both sides."""

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextbase.compare.edits import line_edits, quick_edits
from contextbase.compare.lines import Edit
from contextbase.compare.text import lines_of

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines are busy at times
both = pytest.mark.parametrize("edits_between", [line_edits, quick_edits])
Edits = Callable[[bytes, bytes], list[Edit]]


def patched(old: bytes, new: bytes, edits: list[Edit]) -> bytes:
    old_lines, new_lines = lines_of(old), lines_of(new)
    for edit in reversed(edits):
        old_lines[edit.start : edit.end] = new_lines[edit.new_start : edit.new_end]
    return b"".join(old_lines)


def kept(content: bytes, edits: list[Edit]) -> int:
    return len(lines_of(content)) - sum(edit.end - edit.start for edit in edits)


@both
@patient
@given(old=st.binary(max_size=60) | st.text("ab\n", max_size=40).map(str.encode), new=st.text("ab\n", max_size=40))
def test_the_edits_make_the_one_text_the_other(edits_between: Edits, old: bytes, new: str) -> None:
    content = new.encode()
    assert patched(old, content, edits_between(old, content)) == content


@both
@patient
@given(seed=st.integers(0, 10_000), repeated=st.sampled_from([0.0, 0.5, 0.95]), places=st.integers(1, 12))
def test_scattered_edits_of_a_long_text_are_found_one_by_one(
    edits_between: Edits, seed: int, repeated: float, places: int
) -> None:
    chance = random.Random(seed)
    lines = [
        chance.choice(["    return None\n", "}\n", "\n", "# ---- the same line again ----\n"])
        if chance.random() < repeated
        else f"line {number} with a number of its own, {chance.randrange(10**6)}\n"
        for number in range(800)
    ]
    edited = list(lines)
    for place in range(places):
        at = chance.randrange(len(edited))
        if chance.random() < 0.3:  # a block that moves a little
            block = edited[at : at + 5]
            del edited[at : at + 5]
            edited[at + 3 : at + 3] = block
        else:
            edited[at : at + chance.randrange(4)] = [f"new at {place}\n"] * chance.randrange(4)
    old, new = "".join(lines).encode(), "".join(edited).encode()
    found = edits_between(old, new)
    assert patched(old, new, found) == new
    assert kept(old, found) >= len(lines) - places * 30


@pytest.mark.parametrize("seed", range(5))
def test_the_quick_way_finds_as_much_in_common_as_git_does_where_lines_are_their_own(seed: int) -> None:
    chance = random.Random(seed)
    lines = [f"line {number} {chance.random()}\n" for number in range(1000)]
    edited = list(lines)
    for place in range(10):
        at = chance.randrange(len(edited))
        edited[at : at + chance.randrange(3)] = [f"new {place} {number}\n" for number in range(chance.randrange(3))]
    old, new = "".join(lines).encode(), "".join(edited).encode()
    assert kept(old, quick_edits(old, new)) == kept(old, line_edits(old, new))


@both
def test_texts_of_which_a_diff_would_take_minutes_count_as_replaced_where_they_differ(edits_between: Edits) -> None:
    chance = random.Random(1)
    old, new = ("".join(f"{chance.randrange(300)}\n" for _ in range(80_000)).encode() for _ in range(2))
    head = b"".join(b"%d %d\n" % (number, number) for number in range(1000))
    assert edits_between(head + old, head + new) == [Edit(1000, 81_000, 1000, 81_000)]
