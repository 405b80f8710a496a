"""Events of one turn on their way into the journal: deltas are joined, and the turn's output is counted."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from contextbase.agents.model import AgentQuestion, AgentTurn, SteerMessage
from contextbase.agents.shortening import shortened, shortened_values
from contextbase.executor.journal import EventJournal
from contextbase.executor.questions import Questions

__all__ = ["EventWriter", "OutputLimitReached"]

_LONGEST_WAIT: Final = 0.1  # seconds that a delta may wait for the next one; the first one after a pause does not wait
_LONGEST_DELTA: Final = 1 << 10  # characters
_LONGEST_TEXT: Final = 512 << 10
_DELTAS: Final = ("message.delta", "reasoning.delta")


class OutputLimitReached(Exception):
    """The turn wrote more than it may."""


class EventWriter:
    def __init__(self, journal: EventJournal, turn: AgentTurn, questions: Questions) -> None:
        self._journal = journal
        self._turn = turn
        self._questions = questions
        self.steering: asyncio.Queue[SteerMessage] = asyncio.Queue()
        self._steered: set[str] = set()
        self._written = 0
        self._pending: tuple[str, dict[str, Any]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._joined_until = 0.0  # deltas before then wait for each other

    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind in _DELTAS:
            self._join(kind, data)
        else:
            self.flush()
            self._write(kind, data)
        if self._turn.max_output is not None and self._written > self._turn.max_output:
            raise OutputLimitReached

    async def ask(self, question: AgentQuestion) -> Mapping[str, Any]:
        await self.emit(
            "human_loop.requested",
            {
                "question_id": question.question_id,
                "kind": question.kind,
                "prompt": question.prompt,
                "options": [dict(option) for option in question.options],
                "multiple": question.multiple,
                "context": shortened_values(question.context),
            },
        )
        return await self._questions.answered(question)

    def steer(self, message: SteerMessage) -> None:
        """Once, however often it is told."""
        if message.steer_id not in self._steered:
            self._steered.add(message.steer_id)
            self.steering.put_nowait(message)

    def last_words(self, kind: str, data: Mapping[str, Any]) -> None:
        """What is written in any case, however much was written before."""
        self.flush()
        self._write(kind, data)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending is not None:
            (kind, data), self._pending = self._pending, None
            self._joined_until = asyncio.get_running_loop().time() + _LONGEST_WAIT
            self._write(kind, data)

    def _join(self, kind: str, data: Mapping[str, Any]) -> None:
        if self._pending is not None:
            before, joined = self._pending
            if (before, joined["message_id"], joined["part"]) == (kind, data["message_id"], data["part"]):
                joined["text"] += data["text"]
                if len(joined["text"]) >= _LONGEST_DELTA:
                    self.flush()
                return
            self.flush()
        self._pending = (kind, dict(data))
        loop = asyncio.get_running_loop()
        if len(data["text"]) >= _LONGEST_DELTA or loop.time() >= self._joined_until:
            self.flush()
        else:
            self._timer = loop.call_at(self._joined_until, self.flush)

    def _write(self, kind: str, data: Mapping[str, Any]) -> None:
        if isinstance(data.get("text"), str) and len(data["text"]) > _LONGEST_TEXT:
            data = {**data, "text": shortened(data["text"], _LONGEST_TEXT)[0], "truncated": True}
        event = {
            "n": 0,
            "event_id": "",
            "run_id": self._turn.run_id,
            "attempt": self._turn.attempt,
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "type": kind,
            "data": dict(data),
        }
        self._journal.append(event)
        self._written += len(json.dumps(data))
