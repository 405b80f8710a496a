"""A resolver that is asked again when it does not answer."""

import asyncio
from typing import Final

from contextbase.backoff import Backoff
from contextbase.errors import Unavailable
from contextbase.review.ports import Proposal, Question, Resolver

__all__ = ["RetryingResolver"]

_BACKOFF: Final = Backoff(retries=2, first=1.0)


class RetryingResolver:
    def __init__(self, resolver: Resolver, *, backoff: Backoff = _BACKOFF) -> None:
        self._resolver = resolver
        self._backoff = backoff

    async def propose(self, question: Question) -> Proposal | None:
        for delay in self._backoff.delays():
            try:
                return await self._resolver.propose(question)
            except Unavailable:
                await asyncio.sleep(delay)
        return await self._resolver.propose(question)
