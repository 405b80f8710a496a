"""Messages that went into a working turn: what people said in them, and their own runs, which are over with that."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from contextbase.conversation.log import LoggedEvent
from contextbase.conversation.model import MESSAGE_STEERED, RunEvent
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import ContextbaseError
from contextbase.ids import Clock
from contextbase.sessions.agent_runs import AgentRuns, state_event
from contextbase.sessions.executor_link import ExecutorLink
from contextbase.sessions.model import RunId
from contextbase.sessions.repository import SessionRepository, run_of_row

__all__ = ["SteeredMessages", "SteeringDelivery"]

_SQL: Final = load_queries("contextbase.sessions")


@dataclass(frozen=True, kw_only=True, slots=True)
class SteeredMessages:
    database: Database
    repository: SessionRepository
    clock: Clock

    async def with_texts(self, run_id: RunId, events: Sequence[RunEvent]) -> list[RunEvent]:
        """What people said is theirs, whatever an executor says that it was."""
        named = _named(events)
        if not named:
            return list(events)
        async with self.database.connection() as connection:
            run = await self.repository.run(connection, run_id)
            rows = await connection.fetch(_SQL.steered_prompts, run.session_id, named)
        texts = {str(row["id"]): row["prompt"] for row in rows}
        return [_with_text(event, texts.get(str(event.data.get("steer_id")), "")) for event in events]

    async def end(self, connection: Connection, run_id: RunId, events: Sequence[RunEvent]) -> list[LoggedEvent]:
        """Messages that the turn has taken leave the queue, if they still wait. The session must be locked; no run of
        it may be."""
        named = _named(events)
        if not named:
            return []
        working = await self.repository.run(connection, run_id)
        rows = await connection.fetch(_SQL.lock_steering, working.session_id, named)
        message = f"It was given to the run {working.number}, which was at work."
        taken = [row["run_id"] for row in rows]
        ended = [run_of_row(row) for row in await connection.fetch(_SQL.take_steering, taken, message)]
        for run in ended:
            await connection.execute(_SQL.leave_queue, run.id)
        return [state_event(run, self.clock.now()) for run in ended]


class SteeringDelivery:
    """Gives messages to the turn of a run that works. One that the turn does not take, because it ends or its agent
    cannot, waits for its own run."""

    def __init__(self, runs: AgentRuns, run_id: RunId) -> None:
        self._runs = runs
        self._run_id = run_id
        self._known: set[RunId] = set()
        self._waiting: asyncio.Queue[RunId] = asyncio.Queue()

    def add(self, messages: Sequence[RunId]) -> None:
        for message in messages:
            if message not in self._known:
                self._known.add(message)
                self._waiting.put_nowait(message)

    async def deliver(self, link: ExecutorLink) -> None:
        """For as long as the turn works."""
        while True:
            message = await self._runs.get(await self._waiting.get())
            body = {"run_id": str(self._run_id), "steer_id": str(message.id), "text": message.prompt}
            with suppress(ContextbaseError):
                await link.call("POST", "/steer", body)


def _named(events: Sequence[RunEvent]) -> list[UUID]:
    return [UUID(str(event.data["steer_id"])) for event in events if event.kind == MESSAGE_STEERED]


def _with_text(event: RunEvent, text: str) -> RunEvent:
    return replace(event, data={**event.data, "text": text}) if event.kind == MESSAGE_STEERED else event
