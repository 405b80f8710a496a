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


class Channel:
    def close(self) -> None:
        """As a conversation's."""


async def test_a_spare_that_could_not_be_made_fails_neither_the_next_command_nor_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launcher, there, answers = Launcher(), set[str](), iter([True, False, True, False])

    async def work_now_and_then(_: tuple[str, ...]) -> Channel:
        if not next(answers):
            raise MachineProblem("The launcher ends.")
        return Channel()

    monkeypatch.setattr(launcher, "open", work_now_and_then)
    spares = Spares(launcher, cast("ControlGroup", NamedGroup("", there)))
    for number in (1, 2):  # after each one the next is made, and fails
        assert (await spares.take()).group is not None
        assert len(there) >= number
    await spares.close()
    assert len(there) == 2  # of the two that were taken


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
