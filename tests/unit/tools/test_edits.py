"""Edits by exact match."""

import pytest

from contextbase.errors import InvalidInput
from contextbase.tools.edits import replaced

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


def edited(old: str, new: str, *, everywhere: bool = False, content: str = TEXT) -> tuple[str, int]:
    return replaced(content, old, new, everywhere=everywhere, path="a.py")


def test_one_match_is_replaced_and_nothing_else() -> None:
    assert edited("return 1", "return 11") == (TEXT.replace("return 1\n", "return 11\n"), 1)


def test_several_matches_are_replaced_only_if_all_are_meant() -> None:
    assert edited("return", "yield", everywhere=True) == (TEXT.replace("return", "yield"), 2)
    with pytest.raises(InvalidInput, match=r"2 times, at lines 2, 6"):
        edited("return", "yield")


def test_a_miss_shows_the_nearest_lines() -> None:
    with pytest.raises(InvalidInput, match=r"at line 5:\n\n\ndef two\(\):\n    return 2"):
        edited("def twoo():", "x")


def test_a_miss_of_something_quite_different_says_so() -> None:
    with pytest.raises(InvalidInput, match=r"nor anything like it"):
        edited("zzzzzzzzzzzz", "x")


def test_line_ends_of_the_file_are_kept_where_a_model_writes_plain_ones() -> None:
    assert edited("a\nb", "c\nd", content="a\r\nb\r\ne\r\n") == ("c\r\nd\r\ne\r\n", 1)
    assert edited("a", "x\ny", content="a\r\nb\r\n") == ("x\r\ny\r\nb\r\n", 1)


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("same", "same")])
def test_what_changes_nothing_is_refused(old: str, new: str) -> None:
    with pytest.raises(InvalidInput):
        edited(old, new)
