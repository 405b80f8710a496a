"""Questions that come at the same time, asked together: a trip to the database costs more than a longer answer."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

__all__ = ["Coalescer"]

K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q")
A = TypeVar("A")


class Coalescer(Generic[K, Q, A]):
    """Rounds of answers, of which one at a time is under way for each key. Who asks meanwhile is answered in the next:
    a round begins after everybody it answers has asked, so that nobody hears what was true before."""

    def __init__(self, answer: Callable[[K, Sequence[Q]], Awaitable[Sequence[A]]], *, most: int) -> None:
        """`answer` gives an answer for each of up to `most` questions, in order; if it raises, all hear that."""
        self._answer = answer
        self._most = most
        self._asked: dict[K, list[tuple[Q, asyncio.Future[A]]]] = {}  # by the keys whose rounds are under way
        self._rounds: set[asyncio.Task[None]] = set()

    async def ask(self, key: K, question: Q) -> A:
        hears: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        if key in self._asked:
            self._asked[key].append((question, hears))
        else:
            self._asked[key] = [(question, hears)]
            rounds = asyncio.create_task(self._serve(key))
            self._rounds.add(rounds)
            rounds.add_done_callback(self._rounds.discard)
        return await hears

    async def _serve(self, key: K) -> None:
        try:
            while asked := self._asked[key][: self._most]:
                self._asked[key] = self._asked[key][self._most :]
                await self._round(key, asked)
        finally:
            del self._asked[key]

    async def _round(self, key: K, asked: Sequence[tuple[Q, "asyncio.Future[A]"]]) -> None:
        try:
            answers = await self._answer(key, [question for question, _ in asked])
        except Exception as error:  # noqa: BLE001 - whatever it is, it is for those who asked
            for _, hears in asked:
                if not hears.done():
                    hears.set_exception(error)
            return
        for (_, hears), answer in zip(asked, answers, strict=True):
            if not hears.done():  # who asked may have gone away
                hears.set_result(answer)
