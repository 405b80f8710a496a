"""Scopes and positions as text, and previews of large payloads."""

import json
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.errors import InvalidInput
from contextbase.ids import PrincipalId, ProjectId
from contextbase.streams.bodies import preview_of
from contextbase.streams.model import SYSTEM, Position, Scope

LENGTHS = st.sampled_from([0, 1, 10, 499, 500, 501, 700, 3000])
TEXTS = st.builds(lambda letter, length: letter * length, st.sampled_from('xé漢😀"'), LENGTHS)
VALUES = st.integers() | TEXTS | st.builds(lambda text, length: [text] * length, TEXTS, st.integers(0, 5))


@pytest.mark.parametrize(
    "scope", [Scope.project(ProjectId(uuid4())), Scope.session(uuid4()), Scope.user(PrincipalId(uuid4())), SYSTEM]
)
def test_a_scope_is_read_back_from_its_text(scope: Scope) -> None:
    assert Scope.parse(str(scope)) == scope


@pytest.mark.parametrize(
    "text",
    ["", "system:", f"system:{UUID(int=0)}", "project:", "project:notes", f"team:{UUID(int=1)}", "user:me"],
)
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Scope.parse(text)


@given(epoch=st.uuids(), number=st.integers(0, 10**18 - 1))
def test_a_position_is_read_back_from_its_text(epoch: UUID, number: int) -> None:
    position = Position(epoch=epoch, number=number)
    assert Position.parse(str(position)) == position


@given(payload=st.dictionaries(TEXTS, VALUES, max_size=10))
def test_a_preview_is_small_and_has_nothing_that_the_payload_has_not(payload: dict[str, object]) -> None:
    preview = preview_of(payload)
    assert len(json.dumps(preview, ensure_ascii=False, separators=(",", ":")).encode()) <= 2048
    for name, value in preview.items():
        whole = payload[name]
        assert value == whole or (isinstance(whole, str) and isinstance(value, str) and whole.startswith(value[:-1]))


def test_a_preview_keeps_what_is_short_whatever_comes_before_it() -> None:
    payload = {"output": "x" * 100_000, "lines": list(range(10_000)), "tool": "bash", "code": 0}
    assert preview_of(payload) == {"output": "x" * 500 + "…", "tool": "bash", "code": 0}
