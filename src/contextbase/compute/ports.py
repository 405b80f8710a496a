"""Where long computations are made."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

__all__ = ["Compute"]

Result = TypeVar("Result")


class Compute(Protocol):
    async def run(self, owner: Hashable, work: Callable[..., Result], *arguments: Any) -> Result:
        """What the function returns for the arguments; the event loop goes on meanwhile.

        The function is at the top level of a module, and everything in and out can be pickled. `owner` is for whom it
        is done: owners take turns. Raises what the function raises; `TooBusy` if the owner has too much waiting; and
        `Unavailable` if the function took too long or took its process down.
        """
        ...
