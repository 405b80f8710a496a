"""When a chore runs next."""

from collections.abc import Callable
from datetime import timedelta
from random import uniform
from typing import Final

__all__ = ["next_run_in"]

_FIRST_RETRY: Final = timedelta(minutes=1)
_LONGEST_RETRY: Final = timedelta(minutes=5)
_JITTER: Final = 0.1


def next_run_in(every: timedelta, failures: int, *, spread: Callable[[float, float], float] = uniform) -> timedelta:
    """After a success `every`, give or take a tenth, so that servers do not all come at the same moment. After failures
    in a row ever longer: from a minute, or sooner if the chore runs more often, up to `every` or five minutes."""
    wait = every
    if failures:
        wait = min(every, _FIRST_RETRY) * 2 ** min(failures - 1, 20)
        wait = min(wait, max(every, _LONGEST_RETRY))
    return wait * spread(1 - _JITTER, 1 + _JITTER)
