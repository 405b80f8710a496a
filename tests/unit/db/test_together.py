"""Questions that come at the same time are answered together, and each by what was true after it was asked."""

import asyncio
from collections.abc import Sequence

import pytest

from contextbase.db.coalescer import Coalescer


class Oracle:
    """Answers when it is let: with the number of the round."""

    def __init__(self) -> None:
        self.rounds: list[tuple[str, list[int]]] = []
        self.let = asyncio.Event()
        self.failures: list[Exception] = []

    async def answer(self, key: str, questions: Sequence[int]) -> list[int]:
        self.rounds.append((key, list(questions)))
        await self.let.wait()
        if self.failures:
            raise self.failures.pop()
        return [question * 10 for question in questions]


async def asked(together: Coalescer[str, int, int], *questions: int, key: str = "a") -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(together.ask(key, question)) for question in questions]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_who_asks_during_a_round_is_answered_in_the_next() -> None:
    oracle = Oracle()
    together = Coalescer(oracle.answer, most=10)
    tasks = await asked(together, 1) + await asked(together, 2, 3)
    oracle.let.set()
    assert await asyncio.gather(*tasks) == [10, 20, 30]
    assert oracle.rounds == [("a", [1]), ("a", [2, 3])]


async def test_a_round_has_no_more_questions_than_allowed() -> None:
    oracle = Oracle()
    together = Coalescer(oracle.answer, most=2)
    tasks = await asked(together, 1) + await asked(together, 2, 3, 4)
    oracle.let.set()
    await asyncio.gather(*tasks)
    assert [questions for _, questions in oracle.rounds] == [[1], [2, 3], [4]]


async def test_other_keys_do_not_wait() -> None:
    oracle = Oracle()
    together = Coalescer(oracle.answer, most=10)
    tasks = await asked(together, 1, key="a") + await asked(together, 2, key="b")
    assert oracle.rounds == [("a", [1]), ("b", [2])]
    oracle.let.set()
    assert await asyncio.gather(*tasks) == [10, 20]


async def test_a_failure_is_for_all_of_its_round_and_the_next_round_is_asked_all_the_same() -> None:
    oracle = Oracle()
    oracle.failures = [OSError("gone")]
    together = Coalescer(oracle.answer, most=10)
    first, (second,) = await asked(together, 1), await asked(together, 2)
    oracle.let.set()
    with pytest.raises(OSError, match="gone"):
        await first[0]
    assert await second == 20


async def test_who_goes_away_takes_nobody_along() -> None:
    oracle = Oracle()
    together = Coalescer(oracle.answer, most=10)
    gone, stays = await asked(together, 1, 2)
    gone.cancel()
    oracle.let.set()
    assert await stays == 20
    assert gone.cancelled()
