"""Appends to a session's stream and keeps what is shown of it in step, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
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
        if not events:
            return []
        numbers = await self.streams.append(connection, Scope.session(session_id), [event.stored for event in events])
        placed = [
            SessionEvent(
                number=number,
                kind=event.kind,
                run_id=event.run_id,
                attempt=event.attempt,
                ts=event.ts,
                data=event.data,
            )
            for number, event in zip(numbers, events, strict=True)
        ]
        projection = await self.repository.to_change(connection, placed)
        for one in placed:
            projection.apply(one)
        await self.repository.put(connection, session_id, projection)
        for rows in self.rows:
            if mine := [one for one in placed if one.kind in rows.kinds]:
                await rows.update(connection, session_id, mine)
        return numbers

    def hint(self, session_id: UUID) -> None:
        """Wake the session's readers."""
        self.streams.hint(Scope.session(session_id))

    def hint_machines(self) -> None:
        """Wake the machines: there are runs to claim, or to end."""
        self.streams.hint(SYSTEM)
