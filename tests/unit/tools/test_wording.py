"""Answers for models: short, and never without the way to the rest."""

from contextbase.tools.wording import bytes_shown, fitting, listed


def test_lines_are_taken_while_they_fit_and_at_least_one() -> None:
    assert fitting(["aaaa", "bb", "c"], 8) == (["aaaa", "bb"], False)
    assert fitting(["aaaa", "bb"], 8) == (["aaaa", "bb"], True)
    assert fitting(["a" * 50, "b"], 8) == (["a" * 50], False)
    assert fitting([], 8) == ([], True)


def test_a_long_list_says_how_many_more_there_are() -> None:
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert listed(["a"], 2) == "a"


def test_sizes_are_round() -> None:
    assert [bytes_shown(size) for size in (0, 999, 1000, 12_345_678)] == ["0 B", "999 B", "1.0 KB", "12.3 MB"]
