"""What else is shown of a session's events, beside messages and tools."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from contextbase.conversation.model import SessionEvent
from contextbase.db.database import Connection

__all__ = ["EventRows"]


class EventRows(Protocol):
    """Rows that are a function of some kinds of events."""

    @property
    def kinds(self) -> frozenset[str]:
        """Of events that change them."""
        ...

    async def update(self, connection: Connection, session_id: UUID, events: Sequence[SessionEvent]) -> None:
        """Apply events of these kinds, in order, in the transaction that stores the events."""
        ...
