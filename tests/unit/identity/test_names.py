"""How principals and subjects are written, and that every layer spells levels and strategies alike."""

from typing import get_args

import pytest

from contextbase.errors import InvalidInput
from contextbase.identity.levels import Level
from contextbase.identity.model import PrincipalKind, PrincipalName
from contextbase.identity.policies import MERGE_STRATEGIES, Subject
from contextbase.merge import Strategy
from contextbase.wire.policy import LevelName, StrategyName


@pytest.mark.parametrize("text", ["everyone", "group:writers", "agent:a.b@c-d", "user:ann", "adapter:notion", "bot"])
def test_a_subject_is_written_as_it_was_read(text: str) -> None:
    assert str(Subject.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", ":", "agent:", "robot:x", "group:", "group:a:b", "a b", "agent:x\x00", "agent:-x"]
)
def test_what_names_nobody_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Subject.parse(text)


def test_a_principal_may_be_named_without_its_kind() -> None:
    assert PrincipalName.parse("bot") == PrincipalName(name="bot")
    assert PrincipalName.parse("agent:bot") == PrincipalName(name="bot", kind=PrincipalKind.AGENT)


def test_levels_are_spelt_alike_on_the_wire() -> None:
    assert get_args(LevelName) == tuple(map(str, Level))


def test_strategies_are_those_of_merging_and_critical() -> None:
    assert set(MERGE_STRATEGIES) == {*Strategy, "critical"} == set(get_args(StrategyName))
