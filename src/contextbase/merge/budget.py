"""A bound on the time one merge may take, checked inside every loop that grows with the input."""

import time
from typing import Final

__all__ = ["Budget", "BudgetSpent"]

_TICKS_PER_LOOK: Final = 256


class BudgetSpent(Exception):
    """The merge took longer than it may."""


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
