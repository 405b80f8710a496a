"""Patterns of paths: what they match, and that no pattern takes long over any path."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextbase.wildcards import expression_of

_PIECES = st.sampled_from(["a", "b", "ab", "*", "**", "?", "/", "**/", "*a*", "/**/"])
_PATTERNS = st.lists(_PIECES, min_size=1, max_size=9).map("".join)
_PATHS = st.text(alphabet="ab/", min_size=1, max_size=9)


@given(pattern=_PATTERNS, path=_PATHS)
@example(pattern="**a*b", path="a/ab")
@example(pattern="a/**/b/**/c", path="a/b/x/b/c")
def test_a_pattern_matches_what_its_wildcards_say(pattern: str, path: str) -> None:
    assert (re.fullmatch(expression_of(pattern), path, re.DOTALL) is not None) == _matches(pattern, path)


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 60 + "*b",
        "**a" * 60 + "**b",
        "**/*a" * 60 + "**/b",
        "**a*a" * 60 + "b",
        "*a/**/" * 60 + "b",
        "*?" * 60 + "b",
    ],
)
@pytest.mark.parametrize("path", ["a" * 255, "a/" * 500 + "a", ("a" * 60 + "/") * 16 + "a"])
def test_no_pattern_takes_long_over_a_path_that_nearly_matches(pattern: str, path: str) -> None:
    # Trying all ways in which the wildcards could share the path would not end.
    assert re.fullmatch(expression_of(pattern), path, re.DOTALL) is None


def _matches(pattern: str, path: str) -> bool:
    """By the meaning of each wildcard, trying every way."""
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = re.split(r"((?:(?<=/)|^)\*\*/|\*\*|\*|\?)", pattern)
    return re.fullmatch("".join(wild.get(token, re.escape(token)) for token in tokens), path, re.DOTALL) is not None
