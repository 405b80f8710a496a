"""What only our own code may ask of the gate cannot be asked from outside."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

import contextbase.wire
from contextbase.gate import trusted
from contextbase.gate.model import CommitRequest
from contextbase.gate.service import Gate
from contextbase.gate.trusted import TrustedTerms
from contextbase.wire.commit import CommitCreate

TERMS = {field.name for field in fields(TrustedTerms)}
INTERFACES = Path(str(files("contextbase"))) / "interfaces"
COMMIT = {"project": "p", "base_seq": 0, "changes": [{"action": "write", "path": "a", "text": "1"}]}


def wire_models() -> Iterator[type[BaseModel]]:
    for module in pkgutil.iter_modules(contextbase.wire.__path__, "contextbase.wire."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, BaseModel):
                yield value


def test_a_request_has_none_of_the_terms_and_no_wire_model_either() -> None:
    assert {"is_spelt_out", "moved", "is_decided", "closes"} == TERMS
    assert not TERMS & {field.name for field in fields(CommitRequest)}
    assert CommitCreate in wire_models()
    assert not {(model.__name__, name) for model in wire_models() for name in TERMS & model.model_fields.keys()}


@pytest.mark.parametrize("term", sorted(TERMS))
def test_a_body_that_names_one_of_the_terms_is_refused(term: str) -> None:
    CommitCreate.model_validate(COMMIT)
    with pytest.raises(ValidationError, match="extra_forbidden"):
        CommitCreate.model_validate({**COMMIT, term: True})


def test_no_interface_calls_the_gate_on_terms() -> None:
    """The import contract keeps them from the values; this, from the method."""
    names = {Gate.commit_trusted.__name__, *trusted.__all__}
    for file in INTERFACES.rglob("*.py"):
        source = file.read_text()
        if not any(name in source for name in names):
            continue
        nodes = list(ast.walk(ast.parse(source)))
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        used |= {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not used & names, file
