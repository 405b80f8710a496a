import pytest

from contextbase.merge.versions import find_versions, higher, only_raises, substantial


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("1.2.0", "1.3.0", "1.2.9", "1.3.0"),
        ("1.9", "1.10", "1.9.1", "1.10"),
        ("^1.2.0", "^1.2.1", "^2.0.0-rc.1", "^2.0.0-rc.1"),
        ("2.0.0-rc.1", "2.0.0-rc.2", "2.0.0", "2.0.0"),
        ("1.0.0-alpha.9", "1.0.0-alpha.10", "1.0.0-alpha.9", "1.0.0-alpha.10"),
        ("1.0.0-9", "1.0.0-11", "1.0.0-10", "1.0.0-11"),
        ("1.0.0-9", "1.0.0-10", "1.0.0", "1.0.0"),
        (">=1.2,<2", ">=1.3,<2", ">=1.4,<3", ">=1.4,<3"),
        ("actions/checkout@v3", "actions/checkout@v4", "actions/checkout@v10", "actions/checkout@v10"),
        ("node:18-alpine", "node:20-alpine", "node:22-alpine", "node:22-alpine"),
        ("^4", "^5", "^6", "^6"),
        (None, "1.0", "1.1", "1.1"),
    ],
)
def test_the_higher_version_is_taken(base: str | None, ours: str, theirs: str, expected: str) -> None:
    assert higher(base, ours, theirs) == expected
    assert higher(base, theirs, ours) == expected


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("1.2.0", "1.1.0", "1.3.0"),  # one side went back
        ("0.0.0", "1.0.0", "1.1.0"),  # a placeholder is filled in by a release tool
        ("1.0.0", "0.0.0", "1.1.0"),
        (">=1.2,<2", ">=1.3,<2", ">=1.2,<3"),  # neither is higher in both
        ("1.0", "^1.1", "~1.2"),  # not the versions alone differ
        ("10", "20", "30"),  # a number is not a version
        ("retries=1", "retries=2", "retries=3"),
        ("localhost:5432", "localhost:5433", "localhost:5434"),
        ("2024-01-02", "2024-02-02", "2024-03-02"),
        ("1.0.0", "1.0.0-1", "1.1.0"),  # below the release that it comes before
        ("1.0.0-1.a", "1.0.0-2.a", "1.0.0-3.a"),
        ("a", "b", "c"),
    ],
)
def test_the_rule_leaves_alone_what_is_not_two_raised_versions(base: str, ours: str, theirs: str) -> None:
    assert higher(base, ours, theirs) is None
    assert higher(base, theirs, ours) is None


def test_a_pinned_hash_goes_with_the_version_beside_it() -> None:
    old, new, newest = (f"action@{digit * 40} # v{digit}.1.0" for digit in "123")
    assert higher(old, new, newest) == newest


def test_a_real_change_beats_a_mere_version_bump() -> None:
    assert substantial("^1.0", "npm:other@latest", "^1.1") == "npm:other@latest"
    assert substantial("^1.0", "^1.1", "npm:other@latest") == "npm:other@latest"
    assert substantial("^1.0", "npm:other@latest", "npm:another@latest") is None
    assert substantial(">=1.0", ">=1.0,<2", ">=1.1") is None
    assert substantial("^1.0", "~1.0", "^1.1") is None


@pytest.mark.parametrize(
    ("base", "changed", "expected"),
    [
        ('a = "1.0"', 'a = "1.1"', True),
        ("x@v1\ny@v2", "x@v1\ny@v3", True),
        (f"x@{'1' * 40} # v1.0", f"x@{'2' * 40} # v1.1", True),
        (f"x@{'1' * 40} # v1.0", f"x@{'2' * 40} # v1.0", False),  # something changed, but no version
        ("x@v2\ny@v2", "x@v1\ny@v3", False),
        ("1.0", "1.0 # why", False),
        ("a", "a", False),
    ],
)
def test_a_change_of_nothing_but_versions_upwards_is_told_from_others(base: str, changed: str, expected: bool) -> None:
    assert only_raises(base, changed) is expected


def test_versions_are_found_among_other_text() -> None:
    assert find_versions("tokio/0.1.15/doc").around == ("tokio/", "/doc")
    assert find_versions("48b55a011bda").versions == ()
    assert find_versions("v4").versions < find_versions("v4.0.1").versions
