import pytest

from contextbase.merge import Outcome, merge
from contextbase.merge.model import Sides
from contextbase.merge.rules import settle_versions


def merged(base: str, ours: str, theirs: str) -> bytes | None:
    return merge(base.encode(), ours.encode(), theirs.encode(), path="build.gradle").content


def test_of_two_raised_versions_in_a_line_the_higher_is_taken() -> None:
    assert merged("lib 1.2.3\n", "lib 1.3.0\n", "lib 1.2.10\n") == b"lib 1.3.0\n"


def test_plain_numbers_are_not_versions() -> None:
    assert merged("timeout = 1.5\n", "timeout = 2.5\n", "timeout = 3.5\n") is None


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_insertions_the_one_that_has_the_other_in_it_is_taken(swapped: bool) -> None:
    sides = ["a\nb\nx\ny\nc\n", "a\nb\ny\nc\n"]
    ours, theirs = reversed(sides) if swapped else sides
    assert merged("a\nb\nc\n", ours, theirs) == b"a\nb\nx\ny\nc\n"


def test_part_of_a_line_is_not_a_line() -> None:
    answer = merge(b"a\n", b"a\nprefix one\n", b"a\none\n", path="a.txt")
    assert answer.outcome is Outcome.CONFLICT
    assert answer.conflicts[0].suggestion == b"prefix one\n"


def test_lines_of_prose_that_differ_in_raised_versions_have_the_higher_one_each() -> None:
    sides = Sides(b"a 1.0\nsame\nb >=2\n", b"a 1.1\nsame\nb >=3\n", b"a 1.2\nsame\nb >=2.1\n")
    assert settle_versions(sides) == b"a 1.2\nsame\nb >=3\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("a 1.0\nb\n", "a 1.1\nb\n", "a 1.2\nB\n"),  # a line that one side changed may belong to something else
        ("a 1.0\n", "a 1.1\n", "a 1.2\nb\n"),
        ("a 1.0\n", "a 1.1\n", "b 1.2\n"),
        ("## 1.0\n", "## 1.1\n", "## 1.2\n"),
        ("| 1.0 | a |\n", "| 1.1 | a |\n", "| 1.2 | a |\n"),
    ],
    ids=["other change", "other line", "other words", "heading", "table"],
)
def test_other_lines_of_prose_are_not_settled_by_their_versions(base: str, ours: str, theirs: str) -> None:
    assert settle_versions(Sides(base.encode(), ours.encode(), theirs.encode())) is None
