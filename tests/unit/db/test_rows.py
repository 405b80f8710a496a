"""Values made from rows."""

import json
from dataclasses import dataclass, field

import pytest

from contextbase.db.rows import RowShape
from contextbase.vocabulary import PrincipalKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    name: str
    kind: PrincipalKind | None
    contents: object = None
    weight: int = 0
    label: str = field(init=False, default="made of the others")


SHAPE = RowShape(Box, kind=PrincipalKind, contents=json.loads)


def test_a_field_is_the_column_of_its_name_and_named_ones_are_converted() -> None:
    box = SHAPE({"name": "a", "kind": "agent", "contents": "[1]", "weight": 2, "more": "is passed over"})
    assert box == Box(name="a", kind=PrincipalKind.AGENT, contents=[1], weight=2)
    assert isinstance(box.kind, PrincipalKind)


def test_nothing_is_converted_that_is_not_there() -> None:
    box = SHAPE({"name": "a", "kind": None, "contents": None, "weight": 2})
    assert (box.kind, box.contents) == (None, None)


def test_what_is_given_takes_the_place_of_a_column_as_it_is() -> None:
    box = SHAPE({"name": "a", "kind": "agent"}, contents="{", weight=3)
    assert (box.contents, box.weight) == ("{", 3)


def test_a_column_that_is_missing_is_an_error_though_the_field_has_a_default() -> None:
    with pytest.raises(KeyError, match="weight"):
        SHAPE({"name": "a", "kind": "agent", "contents": None})


def test_a_converter_for_a_field_that_is_not_there_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="Box has no field colour"):
        RowShape(Box, colour=str)
