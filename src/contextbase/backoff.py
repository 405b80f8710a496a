"""How long to wait before something is tried again."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Backoff:
    """A wait before each new try: doubling, up to `longest`, each shortened at random by up to half."""

    retries: int = 5
    first: float = 0.1  # seconds
    longest: float = 5.0

    def delays(self) -> Iterator[float]:
        for retry in range(self.retries):
            yield min(self.longest, self.first * 2**retry) * random.uniform(0.5, 1)  # noqa: S311 - spreads load
