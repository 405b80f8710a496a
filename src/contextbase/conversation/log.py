"""Appends to a session's stream and keeps what is shown of it in step, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from uuid import UUID

from contextbase.conversation.model import SessionEvent
from contextbase.conversation.ports import EventRows
from contextbase.conversation.question_repository import QuestionRepository
from contextbase.conversation.repository import ConversationRepository
from contextbase.conversation.todo_repository import TodoRepository
from contextbase.db.database import Connection
from contextbase.ids import PrincipalId
from contextbase.streams.model import SYSTEM, NewEvent, Scope
from contextbase.streams.service import StreamService

__all__ = ["ConversationLog", "LoggedEvent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedEvent:
    """An event on its way into a session's stream. `prepared` is what the stream stores of it."""

    kind: str
    run_id: UUID
    attempt: int
    ts: datetime
    data: Mapping[str, object]
    principal_id: PrincipalId | None = None
    prepared: NewEvent | None = None  # None: it is small enough as it is

    @property
    def stored(self) -> NewEvent:
        if self.prepared is not None:
            return self.prepared
        whose = {"run_id": str(self.run_id), "attempt": self.attempt, "ts": self.ts.isoformat()}
        return NewEvent(kind=self.kind, principal_id=self.principal_id, payload=whose | dict(self.data))


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationLog:
    streams: StreamService
    repository: ConversationRepository = field(default_factory=ConversationRepository)
    rows: tuple[EventRows, ...] = field(default_factory=lambda: (QuestionRepository(), TodoRepository()))

    async def prepared(self, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
        """The same, with large payloads in the blob store: do this before the transaction."""
        stored = await self.streams.prepared(*(event.stored for event in events))
        return [replace(event, prepared=one) for event, one in zip(events, stored, strict=True)]

    async def append(self, connection: Connection, session_id: UUID, events: Sequence[LoggedEvent]) -> list[int]:
        """In the caller's transaction; call `hint` once it has ended. Returns their numbers in the stream."""
        return (await self.append_to_all(connection, {session_id: events}))[session_id]

    async def append_to_all(
        self, connection: Connection, events_of: Mapping[UUID, Sequence[LoggedEvent]]
    ) -> dict[UUID, list[int]]:
        """As `append`, to the streams of several sessions with few statements."""
        stored = {Scope.session(one): [event.stored for event in events] for one, events in events_of.items() if events}
        if not stored:
            return {session_id: [] for session_id in events_of}
        taken = await self.streams.append_to_all(connection, stored)
        numbers = {session_id: taken.get(Scope.session(session_id), []) for session_id in events_of}
        placed = {
            session_id: [_placed(number, event) for number, event in zip(numbers[session_id], events, strict=True)]
            for session_id, events in events_of.items()
        }
        everything = list(chain.from_iterable(placed.values()))
        projection = await self.repository.to_change(connection, everything)
        for one in everything:
            projection.apply(one)
        sessions = {event.run_id: session_id for session_id, events in events_of.items() for event in events}
        await self.repository.put(connection, sessions, projection)
        for session_id, of_session in placed.items():
            for rows in self.rows:
                if mine := [one for one in of_session if one.kind in rows.kinds]:
                    await rows.update(connection, session_id, mine)
        return numbers

    def hint(self, session_id: UUID) -> None:
        """Wake the session's readers."""
        self.streams.hint(Scope.session(session_id))

    def hint_machines(self) -> None:
        """Wake the machines: there are runs to claim, or to end."""
        self.streams.hint(SYSTEM)


def _placed(number: int, event: LoggedEvent) -> SessionEvent:
    return SessionEvent(
        number=number, kind=event.kind, run_id=event.run_id, attempt=event.attempt, ts=event.ts, data=event.data
    )
