"""What an agent program must be told of the conversation before a turn, because it was not there."""

from dataclasses import dataclass, field
from typing import Final

from contextbase.conversation.repository import ConversationRepository
from contextbase.conversation.retelling import retold
from contextbase.db.database import Database
from contextbase.sessions.model import AgentRun, AgentSession
from contextbase.sessions.rewind_repository import RewindRepository

__all__ = ["EarlierTurns", "ToldBefore"]

_MOST_ROWS: Final = 400
PROVIDER_CHANGED: Final = "provider_changed"
NO_STATE: Final = "no_state"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldBefore:
    resume: str | None  # what the program calls the conversation, if it has it
    history: str | None  # all that was said, for a program that has nothing of it, or cannot read what it has
    missed: str | None  # what other programs did since its last turn
    reason: str | None  # why it is told something; None: it knows all
    state_version: str | None  # of the program that wrote what is resumed


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierTurns:
    database: Database
    conversation: ConversationRepository = field(default_factory=ConversationRepository)
    rewinds: RewindRepository = field(default_factory=RewindRepository)

    async def before(self, session: AgentSession, run: AgentRun) -> ToldBefore:
        """Of the turns before a run, and of its own earlier attempts."""
        begun = None if run.started_at is None else session.sdk_session_ids.get(run.provider)
        async with self.database.transaction() as connection:
            if begun is not None:
                rows = await self.conversation.earlier(
                    connection, session.id, after=0, before=run.number + 1, limit=_MOST_ROWS
                )
                told = retold(*rows) or None
                return ToldBefore(resume=begun, history=told, missed=None, reason=None, state_version=run.cli_version)
            last = await self.rewinds.last_begun(connection, session.id, before=run.number)
            if last is None:
                return ToldBefore(resume=None, history=None, missed=None, reason=None, state_version=None)
            own = await self.rewinds.last_begun(connection, session.id, before=run.number, provider=run.provider)
            resume = None if own is None else session.sdk_session_ids.get(run.provider)
            asked = {"before": run.number, "limit": _MOST_ROWS}
            history = retold(*await self.conversation.earlier(connection, session.id, after=0, **asked))
            missed = ""
            if own is not None and resume is not None and own.number < last.number:
                missed = retold(*await self.conversation.earlier(connection, session.id, after=own.number, **asked))
        reason: str | None = PROVIDER_CHANGED
        if own is not None and not missed:
            reason = NO_STATE if resume is None else None
        return ToldBefore(
            resume=resume,
            history=history or None,
            missed=missed or None,
            reason=reason if history else None,
            state_version=None if own is None or resume is None else own.cli_version,
        )
