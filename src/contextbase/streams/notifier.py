"""Hints that a scope has something new, within this process and to others on the same database.

NOTIFY is sent outside every commit's transaction, for all hinted scopes together, and heard by one connection per
process. A hint may be lost at any time: whoever waits for one also looks by itself from time to time.
"""

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import ContextbaseError, InvalidInput
from contextbase.ids import ProjectId
from contextbase.streams.model import Scope

__all__ = ["Notifier"]

_log = logging.getLogger(__name__)

_SQL: Final = load_queries("contextbase.streams")
_STREAMS: Final = "contextbase_streams"
_BETWEEN_NOTIFIES_SECONDS: Final = 0.01
_BETWEEN_LISTENS_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 30.0


class Notifier:
    """Starts its tasks when somebody hints or subscribes; `close` ends them."""

    def __init__(self, database: Database, *, channel: str = _STREAMS) -> None:
        self._database = database
        self._channel = channel
        self._name = secrets.token_hex(8)  # in every notification, to know one's own
        self._wakers: defaultdict[Scope, list[Callable[[], None]]] = defaultdict(list)
        self._hinted: set[Scope] = set()
        self._sender: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    def hint(self, scope: Scope) -> None:
        """Say that there may be something new; returns at once and never fails."""
        self._wake(scope)
        self._hinted.add(scope)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send(), name="streams-notify")

    def hint_project(self, project_id: ProjectId) -> None:
        self.hint(Scope.project(project_id))

    @contextmanager
    def subscribed(self, scope: Scope, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` at every hint about the scope, while the block lasts."""
        self._wakers[scope].append(wake)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="streams-listen")
        try:
            yield
        finally:
            self._wakers[scope].remove(wake)
            if not self._wakers[scope]:
                del self._wakers[scope]

    async def close(self) -> None:
        for task in (self._sender, self._listener):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _wake(self, scope: Scope) -> None:
        for wake in self._wakers.get(scope, ()):
            wake()

    async def _send(self) -> None:
        while self._hinted:
            scopes, self._hinted = self._hinted, set()
            try:
                async with self._database.connection() as connection:
                    await connection.execute(_SQL.notify, self._channel, [f"{self._name} {scope}" for scope in scopes])
            except ContextbaseError as error:
                _log.warning("a hint was not sent; other servers will look by themselves", extra={"code": error.code})
            await asyncio.sleep(_BETWEEN_NOTIFIES_SECONDS)

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_until_lost()
            except ContextbaseError as error:
                _log.warning("hints from other servers cannot be heard now", extra={"code": error.code})
            await asyncio.sleep(_BETWEEN_LISTENS_SECONDS)

    async def _listen_until_lost(self) -> None:
        lost = asyncio.Event()
        async with self._database.session() as connection:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(self._channel, self._on_notify)
            for scope in list(self._wakers):
                self._wake(scope)  # nobody heard what was hinted at before
            while not lost.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_SECONDS):
                        await lost.wait()
                        return
                await connection.fetchval(_SQL.still_there)

    def _on_notify(self, _connection: Any, _process: int, _channel: str, payload: object) -> None:
        sender, _, scope = str(payload).rpartition(" ")
        if sender == self._name:
            return  # everybody here was woken when it was sent
        with suppress(InvalidInput):  # somebody else's NOTIFY on our channel
            self._wake(Scope.parse(scope))
