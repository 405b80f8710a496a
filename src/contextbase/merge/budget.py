"""Bounds on the work of one merge, checked inside every loop that grows with the input."""

import time
from typing import Final, Protocol

__all__ = ["Bound", "Budget", "BudgetSpent", "Steps"]

_TICKS_PER_LOOK: Final = 256


class BudgetSpent(Exception):
    """The merge took longer than it may."""


class Bound(Protocol):
    def tick(self, work: int = 1) -> None:
        """Account for a bit of work: about a microsecond, or `work` of them. Raises `BudgetSpent`."""
        ...


class Budget:
    """Counts work; every few hundred ticks it looks at the clock and raises `BudgetSpent` when time is up."""

    __slots__ = ("_deadline", "_ticks")

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._ticks = 0

    def tick(self, work: int = 1) -> None:
        """Account for a bit of work: about a microsecond, or `work` of them."""
        self._ticks += work
        if self._ticks >= _TICKS_PER_LOOK:
            self._ticks = 0
            if time.monotonic() > self._deadline:
                raise BudgetSpent


class Steps:
    """Counts work and nothing else, so that the result does not depend on how busy the machine is."""

    __slots__ = ("_left",)

    def __init__(self, most: int) -> None:
        self._left = most

    def tick(self, work: int = 1) -> None:
        """Account for `work` steps; a loop in Python does a few million of them in a second."""
        self._left -= work
        if self._left < 0:
            raise BudgetSpent
