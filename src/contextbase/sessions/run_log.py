"""What executors say about their runs, stored once, in order, with what is shown of it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.conversation.events import REFUSED, checked_event
from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import MESSAGE_STEERED, RunEvent
from contextbase.conversation.questions import REQUESTED
from contextbase.conversation.repository import ConversationRepository
from contextbase.db.coalescer import Coalescer
from contextbase.db.database import Connection, Database
from contextbase.errors import ContextbaseError, InvalidInput, LeaseLost, NotFound, TooLarge, Unavailable
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
_MOST_RUNS: Final = 64  # whose events are stored in one transaction
_TOGETHER: Final = RunId(UUID(int=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class AppendedEvents:
    stored: tuple[RunEvent, ...]  # for the first time
    repeated: int  # were stored before
    refused: int  # did not have the shape of an event


@dataclass(frozen=True, kw_only=True, slots=True)
class _Batch:
    """What one executor sent at once."""

    run_id: RunId
    attempt: int
    events: Sequence[RunEvent]
    logged: Sequence[LoggedEvent]  # the same, as the stream stores them

    @property
    def concerns_session(self) -> bool:
        return any(event.data.get("sdk_session_id") or event.kind == MESSAGE_STEERED for event in self.events)


_Stored = list[RunEvent] | Exception


class RunLog:
    """Stores what executors of different runs send at the same time in one transaction: a hundred agents that speak at
    once would else cost a hundred times ten statements."""

    def __init__(
        self,
        *,
        database: Database,
        repository: SessionRepository,
        log: ConversationLog,
        steering: SteeredMessages,
        clock: Clock,
        answer_within: timedelta = timedelta(minutes=60),
    ) -> None:
        """`answer_within`: for a person, until a question expires."""
        self._database = database
        self._repository = repository
        self._log = log
        self._steering = steering
        self._clock = clock
        self._answer_within = answer_within
        self._conversation = ConversationRepository()
        self._rounds: Coalescer[RunId, _Batch, _Stored] = Coalescer(self._stored, most=_MOST_RUNS)

    async def append(
        self, run_id: RunId, attempt: int, events: Sequence[object], *, answer_within: timedelta | None = None
    ) -> AppendedEvents:
        """Store what an executor sent, as it came; what was stored before is not stored again. Raises `LeaseLost` when
        another attempt works on the run, or it has ended. `answer_within`: None: as for every run."""
        checked, refused = self._checked(run_id, events[:MOST_AT_ONCE], answer_within or self._answer_within)
        checked = await self._steering.with_texts(run_id, checked)
        logged = await self._log.prepared([_logged(run_id, attempt, event) for event in checked])
        batch = _Batch(run_id=run_id, attempt=attempt, events=checked, logged=logged)
        stored = await self._rounds.ask(run_id if batch.concerns_session else _TOGETHER, batch)
        if isinstance(stored, Exception):
            raise stored
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
        async with self._database.connection() as connection:
            return await self._conversation.last_event(connection, run_id, attempt)

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
                event = RunEvent(n=n, ts=self._clock.now(), kind=REFUSED, data=data)
            kept.setdefault(event.n, event)
        return [kept[n] for n in sorted(kept)], refused

    def _completed(self, run_id: RunId, event: RunEvent, answer_within: timedelta) -> RunEvent:
        """A question gets its deadline. Its id is its run's own: no agent asks or answers in another's name."""
        if event.kind != REQUESTED:
            return event
        if not str(event.data["question_id"]).startswith(f"{run_id}:"):
            raise InvalidInput("The id of a question begins with the id of its run.")
        deadline = self._clock.now() + answer_within
        return replace(event, data={**event.data, "deadline": deadline.isoformat()})

    async def _stored(self, _key: RunId, batches: Sequence[_Batch]) -> list[_Stored]:
        """Of each batch what is new, or why it is refused."""
        try:
            return await self._together(batches)
        except Unavailable:  # of the database: nobody would fare better alone
            raise
        except Exception as error:  # noqa: BLE001 - whoever is at fault hears of it alone
            _log.info("events are stored run by run", extra={"runs": len(batches), "error": type(error).__name__})
            return [await self._alone(batch) for batch in batches]

    async def _alone(self, batch: _Batch) -> _Stored:
        for left in reversed(range(_TRIES)):
            try:
                return (await self._together([batch]))[0]
            except asyncpg.ForeignKeyViolationError as error:
                # GC removed a body right after it was stored: store it again.
                if not left or error.constraint_name != _KEEPS_BODY:
                    return error
            except Exception as error:  # noqa: BLE001 - for who sent the batch
                return error
            again = [_logged(batch.run_id, batch.attempt, event) for event in batch.events]
            batch = replace(batch, logged=await self._log.prepared(again))
        raise AssertionError  # the last try returns

    async def _together(self, batches: Sequence[_Batch]) -> list[_Stored]:
        async with self._database.transaction() as connection:
            steered: dict[RunId, list[LoggedEvent]] = {}
            for batch in batches:
                if batch.concerns_session:  # first of all: whoever moves runs takes its locks in this order
                    run = await self._repository.run(connection, batch.run_id)
                    await self._repository.find(connection, run.session_id, lock=True)
                    steered[run.id] = await self._steering.end(connection, run.id, batch.events)
            runs = await self._repository.locked_runs(connection, [batch.run_id for batch in batches])
            refusals = [_refusal(runs.get(batch.run_id), batch) for batch in batches]
            accepted = [batch for batch, refusal in zip(batches, refusals, strict=True) if refusal is None]
            new = await self._new(connection, accepted)
            await self._append(connection, runs, list(zip(accepted, new, strict=True)), steered)
        for session_id in {runs[batch.run_id].session_id for batch in accepted}:
            self._log.hint(session_id)
        stored = iter(new)
        return [refusal or [event for event, _ in next(stored)] for refusal in refusals]

    async def _new(self, connection: Connection, batches: Sequence[_Batch]) -> list[list[tuple[RunEvent, LoggedEvent]]]:
        """Of each batch what is not stored yet, nor in a batch before it."""
        names = [(batch.run_id, batch.attempt, event.n) for batch in batches for event in batch.events]
        known = set(await self._conversation.known_events(connection, names))
        new: list[list[tuple[RunEvent, LoggedEvent]]] = []
        for batch in batches:
            new.append([])
            for event, logged in zip(batch.events, batch.logged, strict=True):
                if (name := (batch.run_id, batch.attempt, event.n)) not in known:
                    known.add(name)
                    new[-1].append((event, logged))
        return new

    async def _append(
        self,
        connection: Connection,
        runs: Mapping[RunId, AgentRun],
        batches: Sequence[tuple[_Batch, Sequence[tuple[RunEvent, LoggedEvent]]]],
        steered: Mapping[RunId, Sequence[LoggedEvent]],
    ) -> None:
        placed: dict[UUID, list[LoggedEvent]] = {}
        for batch, new in batches:
            of_session = placed.setdefault(runs[batch.run_id].session_id, [])
            of_session += [logged for _, logged in new]
            of_session += steered.get(batch.run_id, [])
        numbers = {
            session_id: iter(of) for session_id, of in (await self._log.append_to_all(connection, placed)).items()
        }
        ids = []
        for batch, new in batches:
            run = runs[batch.run_id]
            for event, _ in new:
                number = next(numbers[run.session_id])
                ids.append((run.id, run.attempt, run.session_id, event.n, number, event.ts))
                await self._learn(connection, run, event)
            for _ in steered.get(batch.run_id, []):
                next(numbers[run.session_id])
        if ids:
            await self._conversation.put_event_ids(connection, ids)

    async def _learn(self, connection: Connection, run: AgentRun, event: RunEvent) -> None:
        """What the session or the run keeps of an event."""
        if sdk_session_id := event.data.get("sdk_session_id"):
            await self._repository.put_sdk_session(connection, run.session_id, run.provider, str(sdk_session_id))
        if cli_version := event.data.get("cli_version"):
            await self._repository.put_facts(connection, run.id, run.attempt, RunFacts(cli_version=str(cli_version)))


def _refusal(run: AgentRun | None, batch: _Batch) -> ContextbaseError | None:
    if run is None:
        return NotFound(f"There is no run {batch.run_id}.")
    if run.attempt != batch.attempt or run.state in ENDED:
        return LeaseLost(
            f"Nobody works on attempt {batch.attempt} of the run {run.id} any more; its events come too late."
        )
    return None


def _logged(run_id: RunId, attempt: int, event: RunEvent) -> LoggedEvent:
    return LoggedEvent(kind=event.kind, run_id=run_id, attempt=attempt, ts=event.ts, data=event.data)
