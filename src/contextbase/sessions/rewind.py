"""Takes a conversation back to one of its messages, with or without the files of its folder.

Events stay: a rewind is one more of them, and hides what came after the message. The machine with the session's folder
puts back what the agent program knew then, at once or before the next run.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from contextbase.audit.repository import AuditRepository
from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import SESSION_REWOUND
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, ContextbaseError
from contextbase.identity.model import Caller
from contextbase.ids import Clock
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.conversation_point import ConversationPoint, ConversationPoints
from contextbase.sessions.model import AgentRun, AgentSession, SessionId, SessionState
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.rewind_repository import RewindRepository
from contextbase.sessions.worker_host import WorkerHost

__all__ = ["Rewound", "SessionRewinds"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewound:
    point: ConversationPoint
    hidden: tuple[AgentRun, ...]  # as they were
    with_files: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRewinds:
    database: Database
    access: SessionAccess
    runs: AgentRuns
    log: ConversationLog
    audit: AuditRepository
    clock: Clock
    host: WorkerHost | None  # None: this server is no machine
    repository: SessionRepository = field(default_factory=SessionRepository)
    rewinds: RewindRepository = field(default_factory=RewindRepository)
    points: ConversationPoints = field(default_factory=ConversationPoints)

    async def rewind(self, caller: Caller, session_id: SessionId, message_id: str, *, with_files: bool) -> Rewound:
        """An agent's message is the last one that stays; a person's message goes, too. With files, the uncommitted work
        of the session's folder is what it was then; what has landed stays landed. `Conflict` while a run has not ended,
        and with files where no snapshot has them. `NotFound` for a message that is not shown."""
        async with self.database.transaction() as connection:
            session = await self.access.owned(connection, caller, session_id)
            planned = await self._planned(connection, session, message_id, with_files=with_files)
        [event] = await self.log.prepared([self._event(caller, planned, message_id)])
        async with self.runs.step(session_id) as step:
            session = await self.access.owned(step.connection, caller, session_id)
            rewound = await self._planned(step.connection, session, message_id, with_files=with_files)
            if [run.id for run in rewound.hidden] != [run.id for run in planned.hidden]:
                raise Conflict("Something was said in the session meanwhile; look at it, and try again.")
            await self._write(step.connection, session, caller, rewound)
            step.events.append(event)
        await self._carry_out(session)
        return rewound

    async def _planned(
        self, connection: Connection, session: AgentSession, message_id: str, *, with_files: bool
    ) -> Rewound:
        point = await self.points.named(connection, session.id, message_id)
        if session.state is not SessionState.OPEN:
            raise Conflict("The session is closed. Fork it: the new session goes on from the message you name.")
        if await self.repository.open_runs(connection, session.id):
            raise Conflict("A run of this session has not ended. Wait for its end or cancel it, and go back then.")
        if with_files and point.snapshot is None and not point.is_start:
            raise Conflict(
                "The session's files are stored when a run ends, and not for this message. Go back to the last message "
                "of an answer, or without files."
            )
        hidden = await self.rewinds.runs_after(connection, session.id, point.last_number)
        return Rewound(point=point, hidden=tuple(hidden), with_files=with_files)

    async def _write(self, connection: Connection, session: AgentSession, caller: Caller, rewound: Rewound) -> None:
        point = rewound.point
        await self.rewinds.hide_runs(connection, session.id, after=point.last_number)
        if point.keep is not None:
            await self.rewinds.forget_snapshots(connection, point.run.id)
        await self.rewinds.put(connection, session.id, point.snapshot, with_files=rewound.with_files)
        await self.audit.note(
            connection,
            session.project_id,
            "session.rewind",
            "Took a session back to one of its messages.",
            at=self.clock.now(),
            by=caller.actor,
            session_id=str(session.id),
            runs=_ids(rewound.hidden),
        )

    def _event(self, caller: Caller, rewound: Rewound, message_id: str) -> LoggedEvent:
        point = rewound.point
        return LoggedEvent(
            kind=SESSION_REWOUND,
            run_id=point.run.id,
            attempt=point.run.attempt,
            ts=self.clock.now(),
            data={
                "message_id": message_id,
                "keep": point.keep,
                "files": rewound.with_files,
                "runs": _ids(rewound.hidden),
            },
            principal_id=caller.principal.id,
        )

    async def _carry_out(self, session: AgentSession) -> None:
        """At once where the folder is here; else its machine does it with its next look, or the next run."""
        if self.host is None:
            self.log.hint_machines()
            return
        try:
            await self.host.catch_up(session)
        except ContextbaseError as error:
            extra = {"session_id": str(session.id), "error": error.message, "code": error.code}
            _log.warning("a session's folder is taken back before its next run", extra=extra)


def _ids(runs: Sequence[AgentRun]) -> list[str]:
    return [str(run.id) for run in runs]
