import pytest

from contextbase.merge import MergeOutcome, merge
from contextbase.merge.model import Sides
from contextbase.merge.rules import settle_contained, settle_prose


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
    assert answer.outcome is MergeOutcome.CONFLICT
    assert answer.conflicts[0].suggestion == b"prefix one\n"


def test_lines_of_prose_that_differ_in_raised_versions_have_the_higher_one_each() -> None:
    sides = Sides(b"a 1.0\nsame\nb >=2\n", b"a 1.1\nsame\nb >=3\n", b"a 1.2\nsame\nb >=2.1\n")
    assert settle_prose(sides) == b"a 1.2\nsame\nb >=3\n"


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
    assert settle_prose(Sides(base.encode(), ours.encode(), theirs.encode())) is None


@pytest.mark.parametrize("swapped", [False, True])
def test_of_prose_the_side_that_has_all_changed_words_of_the_other_stands(swapped: bool) -> None:
    base, less, more = "Ask teh owner.\nRun it\n", "Ask the owner.\nRun it\n", "Ask the owner first.\nRun it twice\n"
    sides = Sides(base.encode(), *(side.encode() for side in ((more, less) if swapped else (less, more))))
    assert settle_prose(sides) == more.encode()
    answer = merge(*sides, path="notes.md")
    assert (answer.outcome, answer.content) == (MergeOutcome.MERGED, more.encode())


def test_prose_of_which_each_side_changed_other_words_is_contested() -> None:
    sides = Sides(b"Ask teh owner first.\n", b"Ask the owner first.\n", b"Ask teh owner.\n")
    assert settle_prose(sides) is None


MORE_AND_LESS = [
    ("a\nb\n", "A\nx\nB\n", "A\nx\nb\n"),
    ("a\nb\n", "a\nx\ny\nb\n", "a\ny\nb\n"),
    ("a\nb\nc\nd\n", "a\nd\nz\n", "a\nc\nd\nz\n"),
    ("a\n", "A \n\nx\n", "A\n"),
    ("", "x\ny\nz\n", "x\nz\n"),
]


@pytest.mark.parametrize(("base", "more", "less"), MORE_AND_LESS)
def test_the_side_that_has_all_changes_of_the_other_stands_for_both(base: str, more: str, less: str) -> None:
    assert settle_contained(Sides(base.encode(), more.encode(), less.encode())) == more.encode()
    assert settle_contained(Sides(base.encode(), less.encode(), more.encode())) == more.encode()


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("a\nb\n", "A\nb\n", "a\nB\n"),
        ("a\nb\n", "a\nb\nx\n", "x\na\nb\ny\n"),
        ("a = 1\nb = 1\n", "a = 2\nb = 2\n", "b = 1\n"),
        ("a = 1\nb = 1\n", "a = 2\nb = 2\n", "a = 2\n"),
        ("a\n", "", "A\n"),
        ("a\n", "x\ny\n", "y\nx\nz\n"),
        ("a:\n  b\n", "a:\n    b\n", "a:\n  B\n"),
    ],
    ids=[
        "each its own",
        "another place",
        "one changed what the other removed",
        "one changed what the other removed, and both changed the line before it",
        "all removed",
        "other order",
        "indented",
    ],
)
def test_no_side_stands_for_both_that_lacks_a_change_of_the_other(base: str, ours: str, theirs: str) -> None:
    assert settle_contained(Sides(base.encode(), ours.encode(), theirs.encode())) is None
    assert settle_contained(Sides(base.encode(), theirs.encode(), ours.encode())) is None


@pytest.mark.parametrize("path", ["a.yaml", "notes.md", "CHANGELOG.md"])
def test_lines_that_one_side_changed_as_the_other_and_more_are_merged_in_files_of_any_structure(path: str) -> None:
    base = "run: |\n  build\n  test\n"
    less, more = base.replace("build", "make build"), "run: |\n  make build\n  make test\n  publish\n"
    assert merge(base.encode(), less.encode(), more.encode(), path=path).content == more.encode()


def test_a_side_that_has_all_changes_does_not_stand_where_the_file_would_have_a_key_twice() -> None:
    base = "run: |\n  a\n  b\n" + "".join(f"k{number}: 1\n" for number in range(9))
    ours = base.replace("  a\n  b\n", "  A\n  b\n").replace("k2: 1\n", "k2: 1\nnew: 1\n")
    theirs = base.replace("  a\n  b\n", "  A\n  B\n").replace("k6: 1\n", "k6: 1\nnew: 2\n")
    assert merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml").content is None
    theirs = theirs.replace("new: 2\n", "other: 2\n")
    assert merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml").content is not None
