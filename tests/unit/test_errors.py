"""The error tree: codes, the drawing of it, and the way back from a code."""

import re

import pytest

from contextbase import errors
from contextbase.errors import ContextbaseError, NotFound, error_of_code


def all_errors() -> list[type[ContextbaseError]]:
    found: list[type[ContextbaseError]] = [ContextbaseError]
    for kind in found:
        found.extend(child for child in kind.__subclasses__() if child.__module__ == errors.__name__)
    return found


def drawn_tree() -> dict[str, str]:
    """Each class of the docstring's drawing with the one it hangs on."""
    parents, path = {}, []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ([│ ]*(?:[├└]── )?)([A-Z]\w+)", line):
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            parents[match[2]] = path[depth - 1] if depth else ""
    return parents


def test_the_drawing_shows_every_class_where_it_hangs() -> None:
    classes = {kind.__name__: kind.__base__.__name__ for kind in all_errors() if kind.__base__ is not None}
    assert drawn_tree() == classes | {"ContextbaseError": ""}


def test_every_class_has_a_code_of_its_own() -> None:
    codes = [vars(kind).get("code") for kind in all_errors()]
    assert None not in codes
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", str(code)) for code in codes)


def test_every_class_is_public() -> None:
    assert {kind.__name__ for kind in all_errors()} <= set(errors.__all__)


@pytest.mark.parametrize("kind", all_errors())
def test_a_code_leads_back_to_its_class(kind: type[ContextbaseError]) -> None:
    error = error_of_code(kind.code, "Something.", where="here")
    assert type(error) is kind
    assert (error.message, str(error), error.details) == ("Something.", "Something.", {"where": "here"})


def test_the_code_of_a_newer_server_is_kept() -> None:
    error = error_of_code("from_the_future", "Something new.")
    assert type(error) is ContextbaseError
    assert error.code == "from_the_future"
    assert ContextbaseError.code == "internal_error"


def test_details_may_have_any_name() -> None:
    details = {"message": "m", "code": "c", "self": "s"}
    assert error_of_code(NotFound.code, "Gone.", **details).details == details
