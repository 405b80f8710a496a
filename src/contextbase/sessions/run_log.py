"""What executors say about their runs, stored once, in order, with what is shown of it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import asyncpg

from contextbase.conversation.events import REFUSED, checked_event
from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import MESSAGE_STEERED, RunEvent
from contextbase.conversation.questions import REQUESTED
from contextbase.conversation.repository import ConversationRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import InvalidInput, LeaseLost, TooLarge
from contextbase.ids import Clock
from contextbase.sessions.model import AgentRun, RunFacts, RunId
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.states import ENDED
from contextbase.sessions.steering import SteeredMessages

__all__ = ["AppendedEvents", "RunLog"]

_log = logging.getLogger(__name__)

_KEEPS_BODY: Final = "stream_events_keep_their_body"
_TRIES: Final = 3
MOST_AT_ONCE: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class AppendedEvents:
    stored: tuple[RunEvent, ...]  # for the first time
    repeated: int  # were stored before
    refused: int  # did not have the shape of an event


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLog:
    database: Database
    repository: SessionRepository
    log: ConversationLog
    steering: SteeredMessages
    clock: Clock
    answer_within: timedelta = timedelta(minutes=60)  # for a person, until the question expires
    conversation: ConversationRepository = field(default_factory=ConversationRepository)

    async def append(
        self, run_id: RunId, attempt: int, events: Sequence[object], *, answer_within: timedelta | None = None
    ) -> AppendedEvents:
        """Store what an executor sent, as it came; what was stored before is not stored again. Raises `LeaseLost` when
        another attempt works on the run, or it has ended. `answer_within`: None: as for every run."""
        checked, refused = self._checked(run_id, events[:MOST_AT_ONCE], answer_within or self.answer_within)
        checked = await self.steering.with_texts(run_id, checked)
        for left in reversed(range(_TRIES)):
            logged = await self.log.prepared([_logged(run_id, attempt, event) for event in checked])
            try:
                async with self.database.transaction() as connection:
                    if any(event.data.get("sdk_session_id") or event.kind == MESSAGE_STEERED for event in checked):
                        await self._lock_session(connection, run_id)
                    taken = await self.steering.end(connection, run_id, checked)
                    run = await self._fenced(connection, run_id, attempt)
                    stored = await self._append(connection, run, list(zip(checked, logged, strict=True)))
                    await self.log.append(connection, run.session_id, taken)
                break
            except asyncpg.ForeignKeyViolationError as error:
                # GC removed a body right after it was stored: store it again.
                if not left or error.constraint_name != _KEEPS_BODY:
                    raise
        if stored:
            self.log.hint(run.session_id)
        if len(events) > MOST_AT_ONCE:
            rest = await self.append(run_id, attempt, events[MOST_AT_ONCE:], answer_within=answer_within)
            return AppendedEvents(
                stored=(*stored, *rest.stored),
                repeated=len(checked) - len(stored) + rest.repeated,
                refused=refused + rest.refused,
            )
        return AppendedEvents(stored=tuple(stored), repeated=len(checked) - len(stored), refused=refused)

    async def last(self, run_id: RunId, attempt: int) -> int:
        """The executor's number of the newest event that is stored: ask for those after it. 0: none is."""
        async with self.database.connection() as connection:
            return await self.conversation.last_event(connection, run_id, attempt)

    def _checked(self, run_id: RunId, events: Sequence[object], answer_within: timedelta) -> tuple[list[RunEvent], int]:
        """In order of their numbers, each once. What has no number may have come before: it is dropped."""
        kept: dict[int, RunEvent] = {}
        refused = 0
        for raw in events:
            try:
                event = self._completed(run_id, checked_event(raw), answer_within)
            except (InvalidInput, TooLarge) as error:
                refused += 1
                _log.warning("an executor's event is refused", extra={"error": error.message})
                n = raw.get("n") if isinstance(raw, Mapping) else None
                if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n < 2**53:
                    continue
                data = {"code": error.code, "message": error.message}
                event = RunEvent(n=n, ts=self.clock.now(), kind=REFUSED, data=data)
            kept.setdefault(event.n, event)
        return [kept[n] for n in sorted(kept)], refused

    def _completed(self, run_id: RunId, event: RunEvent, answer_within: timedelta) -> RunEvent:
        """A question gets its deadline. Its id is its run's own: no agent asks or answers in another's name."""
        if event.kind != REQUESTED:
            return event
        if not str(event.data["question_id"]).startswith(f"{run_id}:"):
            raise InvalidInput("The id of a question begins with the id of its run.")
        deadline = self.clock.now() + answer_within
        return replace(event, data={**event.data, "deadline": deadline.isoformat()})

    async def _lock_session(self, connection: Connection, run_id: RunId) -> None:
        """First of all: whoever moves runs takes its locks in this order."""
        run = await self.repository.run(connection, run_id)
        await self.repository.find(connection, run.session_id, lock=True)

    async def _fenced(self, connection: Connection, run_id: RunId, attempt: int) -> AgentRun:
        run = await self.repository.run(connection, run_id, lock=True)
        if run.attempt != attempt or run.state in ENDED:
            raise LeaseLost(
                f"Nobody works on attempt {attempt} of the run {run_id} any more; its events come too late."
            )
        return run

    async def _append(
        self, connection: Connection, run: AgentRun, events: Sequence[tuple[RunEvent, LoggedEvent]]
    ) -> list[RunEvent]:
        known = await self.conversation.known_events(connection, run.id, run.attempt, [one.n for one, _ in events])
        new = [(event, logged) for event, logged in events if event.n not in known]
        if not new:
            return []
        numbers = await self.log.append(connection, run.session_id, [logged for _, logged in new])
        ids = [(event.n, number, event.ts) for (event, _), number in zip(new, numbers, strict=True)]
        await self.conversation.put_event_ids(connection, run.session_id, run.id, run.attempt, ids)
        for event, _ in new:
            await self._learn(connection, run, event)
        return [event for event, _ in new]

    async def _learn(self, connection: Connection, run: AgentRun, event: RunEvent) -> None:
        """What the session or the run keeps of an event."""
        if sdk_session_id := event.data.get("sdk_session_id"):
            await self.repository.put_sdk_session(connection, run.session_id, run.provider, str(sdk_session_id))
        if cli_version := event.data.get("cli_version"):
            await self.repository.put_facts(connection, run.id, run.attempt, RunFacts(cli_version=str(cli_version)))


def _logged(run_id: RunId, attempt: int, event: RunEvent) -> LoggedEvent:
    return LoggedEvent(kind=event.kind, run_id=run_id, attempt=attempt, ts=event.ts, data=event.data)
