"""Terminals of sessions: a person's own shell in a session's sandbox, for as long as that person may have it."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from weakref import WeakValueDictionary

from contextbase.db.database import Database
from contextbase.errors import Conflict, ContextbaseError, DatabaseUnavailable, HeldElsewhere, NoMachine
from contextbase.executor.terminals import MOST_TERMINALS
from contextbase.identity.model import Caller
from contextbase.identity.service import IdentityService
from contextbase.ids import Clock, PrincipalId, new_uuid
from contextbase.sandbox.disk import watch_disk
from contextbase.sandbox.model import TerminalSize
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.live_worker import LiveWorker
from contextbase.sessions.model import AgentSession, SessionId, WorkerState
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.session_shell import SessionShell
from contextbase.sessions.worker_host import WorkerHost

__all__ = ["SessionTerminals"]

_log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 1.0
_UNWATCHED: Final = timedelta(minutes=30)  # then the shell is ended
_NOTED: Final = timedelta(minutes=1)  # how often typing is written down as use of the sandbox
_NOT_RUNNING: Final = "The sandbox of this session does not run now. Send its agent a message to start it."
_FULL: Final = f"This sandbox has {MOST_TERMINALS} shells, as many as it may have. End one with `exit`, and try again."


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionTerminals:
    """Each person has one shell in a session, however many of their tabs show it. It ends with the sandbox, with the
    person's right to it, and when nobody has looked at it for a while."""

    database: Database
    access: SessionAccess
    identity: IdentityService
    clock: Clock
    host: WorkerHost | None  # None: this server is no machine
    repository: SessionRepository = field(default_factory=SessionRepository)
    _shells: dict[tuple[SessionId, PrincipalId], SessionShell] = field(default_factory=dict, init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _turns: WeakValueDictionary[tuple[SessionId, PrincipalId], asyncio.Lock] = field(
        default_factory=WeakValueDictionary, init=False
    )

    async def check(self, caller: Caller, session_id: SessionId) -> None:
        """Raises unless the caller may have a terminal there now."""
        async with self.database.connection() as connection:
            await self.access.at_terminal(connection, caller, session_id)

    async def shell(self, caller: Caller, session_id: SessionId, size: TerminalSize) -> SessionShell:
        """The caller's shell, a new one if there is none. `Conflict` while the sandbox does not run, `HeldElsewhere`
        when another machine has it."""
        async with self.database.connection() as connection:
            session = await self.access.at_terminal(connection, caller, session_id)
            worker = await self.repository.worker(connection, session_id)
        # One that is to stop must not be opened again in the middle of that.
        running = WorkerState.RUNNING
        if worker is None or (worker.state, worker.desired_state) != (running, running) or worker.lost_at is not None:
            raise Conflict(_NOT_RUNNING)
        if self.host is None or worker.machine != self.host.machine:
            if worker.machine is None:
                raise NoMachine(_NOT_RUNNING)
            message = f"The session's sandbox is on the machine {worker.machine}; send the request there."
            raise HeldElsewhere(message, machine=worker.machine)
        key = (session_id, caller.principal.id)
        turn = self._turns.setdefault(key, asyncio.Lock())  # a sandbox that does not answer keeps nobody else waiting
        async with turn:
            shell = self._shells.get(key)
            if shell is None or shell.ended is not None:
                return await self._opened(self.host, caller, session, size)
        await shell.resize(size)
        return shell

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _opened(
        self, host: WorkerHost, caller: Caller, session: AgentSession, size: TerminalSize
    ) -> SessionShell:
        live = await host.opened(session)
        name = str(new_uuid())

        async def set_size(wanted: TerminalSize) -> None:
            size = {"rows": wanted.rows, "columns": wanted.columns}
            await live.link.call("POST", f"/terminals/{name}/size", size)

        stream = await live.link.terminal(size, name=name)
        shell = SessionShell(stream=stream, set_size=set_size)
        if self._is_full(session.id):  # the sandbox cuts it, and cannot say why
            await shell.end(_FULL)
            return shell
        key = (session.id, caller.principal.id)
        self._shells[key] = shell  # from here on it counts
        try:
            async with self.database.transaction() as connection:
                summary = f"Opened a terminal in a session of {session.owner}."
                await self.access.note(connection, caller, session, "session.terminal", summary)
        except BaseException:
            del self._shells[key]
            await stream.cut()  # there is no shell that the audit trail does not have
            raise
        task = asyncio.create_task(self._kept(live, caller, session, shell), name=f"terminal-{session.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return shell

    def _is_full(self, session_id: SessionId) -> bool:
        shells = [shell for (at, _), shell in self._shells.items() if at == session_id and shell.ended is None]
        return len(shells) >= MOST_TERMINALS

    async def _kept(self, live: LiveWorker, caller: Caller, session: AgentSession, shell: SessionShell) -> None:
        """To the end of the shell; whatever else watches it ends with it."""
        beside = [
            asyncio.create_task(self._watch(caller, session, shell)),
            asyncio.create_task(self._watch_disk(live, shell)),
        ]
        try:
            await shell.run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            key = (session.id, caller.principal.id)
            if self._shells.get(key) is shell:
                del self._shells[key]

    async def _watch_disk(self, live: LiveWorker, shell: SessionShell) -> None:
        """As for a run: nobody else outside watches what a shell writes."""
        most, full = None if self.host is None else self.host.limits.max_disk, asyncio.Event()
        if most is None or not live.folders:
            return
        watching = [asyncio.create_task(watch_disk(folder, most, full.set)) for folder in live.folders]
        try:
            await full.wait()
            await shell.end("More was written than the sandbox's disk limit allows.")
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _watch(self, caller: Caller, session: AgentSession, shell: SessionShell) -> None:
        """Ends the shell in time, and also when that cannot be told any more."""
        try:
            await self._end_in_time(caller, session, shell)
        except Exception:  # noqa: BLE001 - whatever it is, the shell must not outlive its watch
            _log.exception("a terminal could not be watched any more")
            await shell.end("The server can no longer check whether you may use this terminal.")

    async def _end_in_time(self, caller: Caller, session: AgentSession, shell: SessionShell) -> None:
        """When the person may not have it any more, or has left it alone for long."""
        seen = noted = self.clock.now()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            now = self.clock.now()
            seen = now if shell.is_watched else seen
            if now - seen > _UNWATCHED:
                await shell.end("Nobody looked at the terminal for half an hour.")
                return
            with suppress(DatabaseUnavailable):  # asked again when it answers
                try:
                    await self.check(await self.identity.current(caller), session.id)
                except DatabaseUnavailable:
                    raise
                except ContextbaseError as error:
                    await shell.end(error.message)
                    return
                if shell.was_typed and now - noted > _NOTED:
                    shell.was_typed, noted = False, now
                    await self._note_use(session.id, now)

    async def _note_use(self, session_id: SessionId, now: datetime) -> None:
        async with self.database.connection() as connection:
            await self.repository.use_worker(connection, session_id, now)
