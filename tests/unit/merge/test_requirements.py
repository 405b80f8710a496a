import pytest

from contextbase.merge.requirements import settle_requirement


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("1.2", "1.3", "1.4", "1.4"),
        ("^6.22", "7.0.0-alpha.2", "^6.24", "7.0.0-alpha.2"),  # the form differs too
        ("^3.1", "^3.2 || ^4.0", "^3.4 || ^4.0", "^3.4 || ^4.0"),
        (None, "^10.0 || ^11.0", "^11.0", "^11.0"),
        ("^1.0", "workspace:*", "^1.1", "workspace:*"),
    ],
)
def test_a_requirement_both_sides_changed_is_what_both_changes_come_to(
    base: str | None, ours: str, theirs: str, expected: str
) -> None:
    assert settle_requirement(base, ours, theirs) == expected
    assert settle_requirement(base, theirs, ours) == expected


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("^1.0", "workspace:^1.0", "^1.1"),  # both are meant, and neither side has both
        ("~1.4 || 2.1", "2.1", "~1.4 || 2.2"),  # neither side has what both changes would come to
        ("1.0 || 2.0", "1.0 || 2.1", "1.1 || 2.0.1"),
        ("1.0 || 2.0", "1.0", "2.0"),  # nothing would be left
        ("1.0 || 2.0", "1.0|2.1", "2.0"),  # written in two ways
        ("^1.5", "^1.2 || ^2.0", "^1.6"),  # one side asks for less than before
        ("^1.0", ">=1.1 <3", ">=1.2 <2"),  # neither is stricter
        ("^0.9", "<2.0", "^1.0"),  # an upper bound says nothing of what is needed
        ("0.0.0", "^1.0", ">=1.1"),
        ("main", "^1.0", ">=1.1"),
        ("3.7", '"3.7"', "3.8"),  # one of them is a number
        ("^1.0", "^0.0.0", ">=1.1"),
        ("run || exit", "run it || exit", "run || exit 2"),
        ("a", "b", "c"),
        ("1.0", "1.1 " + "x" * 400, "1.2 " + "x" * 400),
    ],
)
def test_what_no_rule_decides_is_left_to_people(base: str, ours: str, theirs: str) -> None:
    assert settle_requirement(base, ours, theirs) is None
    assert settle_requirement(base, theirs, ours) is None
