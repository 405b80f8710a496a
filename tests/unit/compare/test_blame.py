import json

import pytest

from contextbase.compare import LineBlame, Part, PartBlame, Run, blame_lines
from contextbase.errors import InvalidInput
from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.ports import Unstructured


def test_a_line_belongs_to_the_version_that_brought_it() -> None:
    blame = LineBlame.start(b"a\nb\nc\n", "v1").then(b"a\nB\nc\n", "v2").then(b"0\na\nB\nc\nd", "v3")
    assert blame.runs() == [Run("v3", 1), Run("v1", 1), Run("v2", 1), Run("v1", 1), Run("v3", 1)]


def test_a_blame_that_was_kept_goes_on() -> None:
    kept = LineBlame.start(b"a\nb\n", 1).then(b"a\nc\n", 2)
    assert LineBlame.resume(b"a\nc\n", kept.runs()).then(b"a\nc\nd\n", 3).labels == [1, 2, 3]


def test_a_line_that_comes_back_with_the_other_parent_belongs_to_where_that_got_it() -> None:
    base = LineBlame.start(b"a\nb\n", 1)
    head = base.then(b"a\n", 2)
    assert head.then(b"a\nb\nc\n", 3, other=base).labels == [1, 1, 3]
    assert head.then(b"a\nb\nc\n", 3).labels == [1, 3, 3]


def test_a_chain_of_versions_is_blamed_with_the_joins_in_it() -> None:
    versions = [(1, b"a\nb\n"), (2, b"a\n"), (3, b"a\nb\nc\n")]
    assert blame_lines(versions, second_parents={3: 1}).labels == [1, 1, 3]
    assert blame_lines(versions, second_parents={}).labels == [1, 3, 3]
    for wrong in ({3: 4}, {1: 3}):
        with pytest.raises(InvalidInput):
            blame_lines(versions, second_parents=wrong)
    with pytest.raises(InvalidInput):
        blame_lines([], second_parents={})


def start(value: object, label: int, path: str = "a.json") -> PartBlame[int]:
    return PartBlame.start(json.dumps(value).encode(), label, path=path, budget=Budget(10))


def test_a_value_belongs_to_the_version_that_gave_it_wherever_its_element_moves() -> None:
    blame = start({"l": [{"id": "p", "v": 1}, {"id": "q", "v": 1}]}, 1)
    blame = blame.then(b'{"l": [{"id": "q", "v": 2}, {"id": "p", "v": 1}], "n": {}}', 2)
    assert blame.parts() == [Part("/l/0/id", 1), Part("/l/0/v", 2), Part("/l/1/id", 1), Part("/l/1/v", 1)]


def test_a_version_that_cannot_be_read_is_passed_over() -> None:
    blame = start({"a": 1, "b": 1}, 1).then(b'{"a": 2', 2).then(b"\xff", 3).then(b'{"a": 2, "b": 1}', 4)
    assert blame.parts() == [Part("/a", 4), Part("/b", 1)]
    broken: PartBlame[int] = PartBlame.start(b"{", 1, path="a.json", budget=Budget(10))
    assert broken.parts() == []
    assert broken.then(b"7", 2).parts() == [Part("", 2)]


def test_a_blame_of_values_that_was_kept_goes_on() -> None:
    blame = start({"a": 1, "b": 1}, 1)
    kept = json.loads(json.dumps(blame.labels))
    resumed: PartBlame[int] = PartBlame.resume(b'{"a": 1, "b": 1}', kept, path="a.json", budget=Budget(10))
    assert resumed.then(b'{"a": 1, "b": 2}', 2).parts() == [Part("/a", 1), Part("/b", 2)]


def test_cells_that_were_run_again_are_not_changed() -> None:
    cell = {"id": "a", "cell_type": "code", "source": "x", "outputs": []}
    blame = start({"cells": [cell]}, 1, "a.ipynb")
    run = json.dumps({"cells": [cell | {"outputs": [1]}, cell | {"id": "b"}]}).encode()
    assert blame.then(run, 2).parts() == [Part("/cells/0", 1), Part("/cells/1", 2)]


def test_what_has_no_values_and_what_takes_too_long_is_refused() -> None:
    with pytest.raises(Unstructured):
        start({}, 1, "a.txt")
    with pytest.raises(BudgetSpent):
        PartBlame.start(b"[" + b"1, " * 20_000 + b"1]", 1, path="a.json", budget=Budget(-1))
