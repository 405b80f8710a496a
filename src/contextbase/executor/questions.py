"""Questions of the agent that wait for a person."""

import asyncio
from collections.abc import Mapping
from typing import Any

from contextbase.agents.model import AgentQuestion

__all__ = ["Questions"]


class Questions:
    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._open: dict[str, tuple[AgentQuestion, asyncio.Future[Mapping[str, Any]]]] = {}

    async def answered(self, question: AgentQuestion) -> Mapping[str, Any]:
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[question.question_id] = (question, future)
        try:
            return await future
        finally:
            del self._open[question.question_id]

    def answer(self, question_id: str, answer: Mapping[str, Any]) -> bool:
        """False: nobody asked it. Harmless when it was answered before: the first answer counts."""
        if question_id in self._answered:
            return True
        _, future = self._open.get(question_id, (None, None))
        if future is None or future.done():
            return False
        self._answered.add(question_id)
        future.set_result(answer)
        return True

    def pending(self) -> list[dict[str, Any]]:
        questions = [question for question, _ in self._open.values()]
        return [
            {
                "question_id": one.question_id,
                "kind": one.kind,
                "prompt": one.prompt,
                "options": [dict(option) for option in one.options],
            }
            for one in questions
        ]
