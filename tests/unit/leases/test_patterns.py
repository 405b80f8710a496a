"""Whether two patterns could match the same path."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.leases import overlap


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "a"),
        ("src/**", "src"),
        ("src/**", "src/a/b"),
        ("**", "anything/at/all"),
        ("**/test_*.py", "tests/unit/test_a.py"),
        ("src/*.py", "src/a.*"),
        ("a/*/c", "a/b/*"),
        ("*/b/**", "a/**/z"),
        ("a**z", "a/b/z"),
        ("a?c", "abc"),
    ],
)
def test_patterns_that_share_a_path_overlap(one: str, other: str) -> None:
    assert overlap(one, other)
    assert overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        ("src", "src/a"),
        ("src/**", "srcs/a"),
        ("src/*.py", "src/*.md"),
        ("src/*", "src/a/b"),
        ("docs/**", "src/**"),
        ("**/*.py", "src/a.md"),
        ("a?c", "ac"),
        ("a/**/b/c", "a/c"),
    ],
)
def test_patterns_that_share_none_do_not(one: str, other: str) -> None:
    assert not overlap(one, other)
    assert not overlap(other, one)


_NAMES = st.sampled_from(["a", "b", "ab", "a*", "*b", "?", "*", "**", "a**", "a?b*"])
_PATTERNS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_PATHS = st.lists(st.sampled_from(["a", "b", "ab", "aab", "abb"]), min_size=1, max_size=5).map("/".join)


@given(one=_PATTERNS, other=_PATTERNS, path=_PATHS)
def test_two_patterns_that_match_one_path_are_never_taken_for_apart(one: str, other: str, path: str) -> None:
    if _matches(one, path) and _matches(other, path):
        assert overlap(one, other)


def _matches(pattern: str, path: str) -> bool:
    """As path policies match."""
    deep = pattern.endswith("/**")
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removesuffix("/**"))
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(wild.get(piece, re.escape(piece)) for piece in pieces)
    return re.fullmatch(body + ("(?:/.*)?" if deep else ""), path) is not None


def test_an_intricate_name_is_soon_compared_with_one_that_nearly_matches_it() -> None:
    # Trying all ways in which the stars could share the name would not end.
    assert not overlap("*a" * 60 + "*b", "a" * 255)
