"""Comparisons by line that would take too many steps."""

import random
from itertools import pairwise

import pytest

from contextbase.compare import LineBlame, Side, compare
from contextbase.compare.edits import line_edits, quick_edits
from contextbase.compare.text import apply_hunks


def _random_lines(count: int, values: int, *, seed: int) -> bytes:
    rng = random.Random(seed)
    return b"".join(b"%d\n" % rng.randrange(values) for _ in range(count))


@pytest.mark.parametrize("values", [10, 1000])
def test_texts_that_take_too_many_steps_to_compare_are_shown_as_replaced_with_a_note(values: int) -> None:
    old, new = (b"head\n" + _random_lines(60_000, values, seed=seed) + b"tail\n" for seed in (1, 2))
    diff = compare(Side.of(old), Side.of(new), path="a.txt")
    assert len(diff.hunks) == 1
    assert "differ too much" in diff.notes[0]
    assert apply_hunks(old, diff.hunks) == new


def test_texts_of_5000_shuffled_lines_are_compared_line_by_line() -> None:
    lines = [b"line %d of some text, so that it is not short\n" % number for number in range(5000)]
    old, new = (b"".join(random.Random(seed).sample(lines, len(lines))) for seed in (1, 2))
    diff = compare(Side.of(old), Side.of(new), path="a.txt")
    assert diff.notes == ()
    assert sum(line[:1] == b" " for hunk in diff.hunks for line in hunk.lines) > 50
    assert apply_hunks(old, diff.hunks) == new


def test_all_stretches_of_a_long_text_together_take_a_bounded_number_of_steps() -> None:
    """Each stretch alone would be compared line by line; there are too many of them."""
    marks = [b"".join(b"mark %d, line %d of the text between\n" % (at, line) for line in range(20)) for at in range(80)]

    def text(seed: int) -> bytes:
        return b"".join(mark + _random_lines(600, 50, seed=seed * 1000 + at) for at, mark in enumerate(marks))

    edits = quick_edits(text(1), text(2))
    assert len(edits) > 1000  # many in each of the first stretches
    assert edits[-1].end - edits[-1].start > 500  # one for the last stretch
    assert sum(after.start - before.end for before, after in pairwise(edits)) > 79 * 20


def test_a_blame_of_texts_that_differ_too_much_names_the_last_version() -> None:
    old, new = (_random_lines(60_000, 10, seed=seed) for seed in (1, 2))
    blame = LineBlame.start(old, 1).then(new, 2)
    assert len(blame.labels) == 60_000
    assert {*blame.labels[1000:-1000]} == {2}
    assert line_edits(old, new) == quick_edits(old, new)
