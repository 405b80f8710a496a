"""Leases in a plain folder, for any number of processes and threads of one machine.

<folder>/lock         the operating system's lock around each step: it ends with the process, so none is left behind
<folder>/leases.json  the book: replaced as a whole, and read without the lock by those who only look

Nothing is flushed to the disk: a power cut ends all holders, and tokens do not depend on the book alone (see book.py).
A book that cannot be read, an empty one say, is one without leases.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from contextbase.durable import explained
from contextbase.ids import Clock, SystemClock
from contextbase.leases.held_leases import TableLeases, ended_lease
from contextbase.leases.model import DEFAULT_TTL, Lease, LeaseHolder, Listener
from contextbase.leases.table import LeaseTable
from contextbase.threads import ended
from contextbase.workspaces.locks import file_lock

__all__ = ["FolderLeases"]

_log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class FolderLeases(TableLeases):
    _longest_pause = 0.1

    def __init__(
        self,
        folder: Path,
        *,
        ttl: timedelta = DEFAULT_TTL,
        clock: Clock | None = None,
        process: LeaseHolder | None = None,
        on_event: Listener | None = None,
    ) -> None:
        super().__init__(ttl=ttl, process=process, on_event=on_event)
        self._folder = folder
        self._clock = clock or SystemClock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="contextbase-leases")
        with explained(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @asynccontextmanager
    async def fenced(self, lease: Lease) -> AsyncIterator[None]:
        with ExitStack() as stack:
            await self._in_thread(self._enter_fence, stack, lease)
            yield

    async def close(self) -> None:
        await super().close()
        self._thread.shutdown(wait=False)

    async def _read(self) -> tuple[LeaseTable, datetime]:
        return await self._in_thread(self._load), self._clock.now()

    async def _changed(self, work: Callable[[LeaseTable, datetime], Result]) -> Result:
        return await self._in_thread(self._change, work)

    @property
    def _lock(self) -> Path:
        return self._folder / "lock"

    async def _in_thread(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Wait for its end even when cancelled. In a thread of our own: who waits for the folder's lock must not keep
        the threads from others that everybody shares, or a fenced block that needs one would never end."""
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._thread, partial(function, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await ended(work)
            raise

    def _enter_fence(self, stack: ExitStack, lease: Lease) -> None:
        with explained(self._folder):
            stack.enter_context(file_lock(self._lock))
        if self._load().find(lease.token, self._clock.now()) is None:
            raise ended_lease(lease)

    def _change(self, work: Callable[[LeaseTable, datetime], Result]) -> Result:
        with self._changing() as book:
            return work(book, self._clock.now())

    @contextmanager
    def _changing(self) -> Iterator[LeaseTable]:
        """The book, to be written down when the block ends."""
        with explained(self._folder), file_lock(self._lock):
            book = self._load()
            yield book
            if book.is_changed:
                draft = self._folder / "leases.json.draft"
                draft.write_text(book.to_json(), encoding="utf-8")
                draft.replace(self._folder / "leases.json")

    def _load(self) -> LeaseTable:
        with explained(self._folder):
            try:
                return LeaseTable.from_json((self._folder / "leases.json").read_text(encoding="utf-8"))
            except FileNotFoundError:
                return LeaseTable()
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                _log.warning("%s holds no leases that can be read (%s); starting with none.", self._folder, error)
                return LeaseTable()
