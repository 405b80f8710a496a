"""Processes that wait for a command leave nothing behind when they cannot be had."""

from typing import cast

import pytest

from contextbase.errors import MachineProblem
from contextbase.limits import ResourceLimits
from contextbase.sandbox.cgroups import ControlGroup
from contextbase.sandbox.native.launcher.client import Launcher
from contextbase.sandbox.spares import Spares


class NamedGroup:
    """As much of a control group as spares need."""

    def __init__(self, name: str, there: set[str]) -> None:
        self._name = name
        self._there = there

    @property
    def members(self) -> tuple[str, ...]:
        return (self._name,)

    def below(self, name: str) -> "NamedGroup":
        return NamedGroup(name, self._there)

    def make(self, limits: ResourceLimits) -> None:
        assert limits.max_memory is None
        self._there.add(self._name)

    def remove(self) -> bool:
        self._there.remove(self._name)
        return True


async def test_no_control_group_is_left_when_the_launcher_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, there, joined = Launcher(), set[str](), list[str]()

    async def fail(groups: tuple[str, ...]) -> None:
        assert there == set(groups)
        joined.extend(groups)
        raise MachineProblem("The launcher ends.")

    monkeypatch.setattr(launcher, "open", fail)
    spares = Spares(launcher, cast("ControlGroup", NamedGroup("", there)))
    with pytest.raises(MachineProblem):
        await spares.take()
    assert joined
    assert not there
