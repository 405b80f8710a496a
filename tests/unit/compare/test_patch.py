from dataclasses import replace

import pytest

from contextbase.compare import Side, apply, apply_changes, compare
from contextbase.errors import Conflict


def test_lines_that_are_not_those_of_the_diff_are_refused() -> None:
    diff = compare(Side.of(b"a\nb\nc\n"), Side.of(b"a\nB\nc\n"), path="a.txt")
    with pytest.raises(Conflict, match="lines from 1"):
        apply(Side.of(b"a\nx\nc\n"), diff)


def test_a_file_that_should_not_be_there_or_is_missing_is_refused() -> None:
    added = compare(None, Side.of(b"a\n"), path="a.txt")
    with pytest.raises(Conflict):
        apply(Side.of(b"other\n"), added)
    with pytest.raises(Conflict):
        apply(None, compare(Side.of(b"a\n"), None, path="a.txt"))


def test_another_binary_is_refused_and_the_new_one_is_named_by_its_hash() -> None:
    old, new = Side.of(b"\0old"), Side.of(b"\0new")
    diff = compare(old, new, path="a.bin")
    assert apply(old, diff) == replace(new, content=None, mime="application/octet-stream")
    with pytest.raises(Conflict):
        apply(Side.of(b"\0other"), diff)


def test_values_that_are_not_there_are_refused_and_the_tree_given_stays_as_it_is() -> None:
    changes = compare(Side.of(b'{"a": {"b": 1, "c": 2}}'), Side.of(b'{"a": {"b": 3}}'), path="a.json").changes
    tree = {"a": {"b": b"1", "c": b"2"}, "d": {}}
    assert apply_changes(tree, changes) == {"a": {"b": b"3"}, "d": {}}
    assert tree == {"a": {"b": b"1", "c": b"2"}, "d": {}}
    for other in ({}, {"a": {}}, {"a": []}, {"a": "text"}):
        with pytest.raises(Conflict):
            apply_changes(other, changes)
