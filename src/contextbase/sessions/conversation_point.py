"""A place in a conversation that somebody names by a message: what stays before it, and which snapshot shows it."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from contextbase.conversation.repository import ConversationRepository
from contextbase.db.database import Connection
from contextbase.errors import NotFound
from contextbase.sessions.model import AgentRun, RunId, SessionId
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.rewind_repository import RewindRepository
from contextbase.sessions.snapshot_model import SessionSnapshot
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.states import ENDED
from contextbase.vocabulary import MessageRole

__all__ = ["ConversationPoint", "ConversationPoints"]

_PROMPT: Final = ":prompt"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationPoint:
    """An agent's message stays; a person's does not: it is the one to be said differently."""

    run: AgentRun  # of the message
    last_number: int  # of the last run that stays
    keep: int | None  # the last position of that run that stays; None: all of it
    snapshot: SessionSnapshot | None  # as the session was there
    is_start: bool  # no agent has worked before

    @property
    def prompt(self) -> str | None:
        """What the person said, if that is taken back."""
        return self.run.prompt if self.last_number < self.run.number else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationPoints:
    """Every method works in the caller's transaction."""

    sessions: SessionRepository = field(default_factory=SessionRepository)
    rewinds: RewindRepository = field(default_factory=RewindRepository)
    snapshots: SnapshotRepository = field(default_factory=SnapshotRepository)
    conversation: ConversationRepository = field(default_factory=ConversationRepository)

    async def named(self, connection: Connection, session_id: SessionId, message_id: str) -> ConversationPoint:
        """By the id of a message; of a run, for its whole answer; of a run and `:prompt`, for what the person said.
        Raises `NotFound`."""
        message = await self.conversation.message(connection, session_id, message_id)
        if message is None:
            run = await self._run(connection, session_id, message_id.removesuffix(_PROMPT))
            last_number = run.number - 1 if message_id.endswith(_PROMPT) else run.number
            return await self._point(connection, run, last_number, None)
        run = await self.sessions.run(connection, RunId(message.run_id))
        if message.role is MessageRole.USER:
            return await self._point(connection, run, run.number - 1, None)
        is_last = message.position >= await self.conversation.last_position(connection, run.id)
        keep = None if is_last and run.state in ENDED else message.position
        return await self._point(connection, run, run.number, keep)

    async def end(self, connection: Connection, session_id: SessionId) -> ConversationPoint | None:
        """After the last run that has ended; None: there is none."""
        runs = await self.rewinds.runs_after(connection, session_id, 0)
        ended = [run for run in runs if run.state in ENDED]
        return await self._point(connection, ended[-1], ended[-1].number, None) if ended else None

    async def _run(self, connection: Connection, session_id: SessionId, name: str) -> AgentRun:
        unknown = NotFound(f"This session shows no message {name[:100]!r}; it may have gone back behind it.")
        try:
            run = await self.sessions.run(connection, RunId(UUID(name)))
        except (ValueError, NotFound):
            raise unknown from None
        if run.session_id != session_id or run.rewound_at is not None:
            raise unknown
        return run

    async def _point(
        self, connection: Connection, run: AgentRun, last_number: int, keep: int | None
    ) -> ConversationPoint:
        begun = await self.rewinds.last_begun(connection, run.session_id, before=last_number + 1)
        snapshot = None if keep is not None else await self.snapshots.after(connection, run.session_id, last_number)
        return ConversationPoint(
            run=run,
            last_number=last_number,
            keep=keep,
            snapshot=snapshot if begun is not None else None,
            is_start=begun is None,
        )
