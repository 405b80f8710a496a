"""Arguments that models send, and what they are told about wrong ones."""

import pytest

from contextbase.errors import InvalidInput
from contextbase.tools.arguments import ArgumentKind, Parameter, checked

PARAMETERS = (
    Parameter(name="path", is_required=True, longest=10),
    Parameter(name="offset", kind=ArgumentKind.NUMBER, least=0, most=100),
    Parameter(name="all", kind=ArgumentKind.FLAG),
    Parameter(name="paths", kind=ArgumentKind.TEXTS),
)


def given(**arguments: object) -> object:
    return checked("tool", PARAMETERS, {"path": "a"} | arguments)


def test_what_is_not_given_has_its_default_and_null_is_not_given() -> None:
    arguments = checked("tool", PARAMETERS, {"path": "a", "offset": None, "all": None})
    assert (arguments.text("path"), arguments.number("offset", 7), arguments.flag("all")) == ("a", 7, False)


@pytest.mark.parametrize("value", [12, "12", 12.0])
def test_a_number_may_be_quoted_or_have_a_point(value: object) -> None:
    assert checked("tool", PARAMETERS, {"path": "a", "offset": value}).number("offset", 0) == 12


def test_one_text_counts_as_a_list_of_one() -> None:
    assert checked("tool", PARAMETERS, {"path": "a", "paths": "b"}).texts("paths") == ("b",)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"pth": "b"}, "Did you mean path?"),
        ({"Offset": 1}, "Did you mean offset?"),
        ({"xyzzy": 1}, "It takes: path, offset, all, paths"),
        ({"path": None}, "needs path"),
        ({"path": 5}, "path must be text"),
        ({"path": "x" * 11}, "10 is the most"),
        ({"path": "\ud800"}, "surrogate"),
        ({"offset": -1}, "0 or more"),
        ({"offset": 101}, "100 or less"),
        ({"offset": "many"}, "whole number"),
        ({"offset": True}, "whole number"),
        ({"offset": 1.5}, "whole number"),
        ({"all": "yes"}, "true or false"),
        ({"paths": []}, "list of 1 to"),
        ({"paths": [1]}, "paths must be text"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_wrong(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=r"^.*$") as refused:
        given(**arguments)
    assert told in refused.value.message
