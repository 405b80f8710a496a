"""A resolver that is asked again when it does not answer."""

import asyncio
from typing import Final

from contextbase.errors import Unavailable
from contextbase.review.ports import Proposal, Question, Resolver

__all__ = ["RetryingResolver"]

_ATTEMPTS: Final = 3


class RetryingResolver:
    def __init__(self, resolver: Resolver, *, first_wait_seconds: float = 1.0) -> None:
        self._resolver = resolver
        self._first_wait_seconds = first_wait_seconds

    async def propose(self, question: Question) -> Proposal | None:
        wait = self._first_wait_seconds
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._resolver.propose(question)
            except Unavailable:
                await asyncio.sleep(wait)
                wait *= 2
        return await self._resolver.propose(question)
