import pytest

from contextbase.merge.words import having_both


def test_the_side_that_has_all_changes_of_words_is_found_whichever_it_is() -> None:
    base, less, more = "See teh guide.", "See the guide.", "See the guide, and ask."
    assert having_both(base, less, more) == having_both(base, more, less) == more


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("a b c", "x b c", "a b y"),
        ("a b c", "a x c", "a y c d"),
        ("a b", "a", "b"),
        ("a " * 600, "b " + "a " * 599, "b " + "a " * 599 + "c"),
    ],
    ids=["each changed another word", "one word changed in two ways", "both removed one", "a long text"],
)
def test_no_side_is_taken_that_lacks_a_change_of_the_other(base: str, ours: str, theirs: str) -> None:
    assert having_both(base, ours, theirs) is None
    assert having_both(base, theirs, ours) is None
