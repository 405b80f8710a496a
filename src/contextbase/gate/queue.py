"""Who waits for a project, and how many of them one batch takes on."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from contextbase.gate.batch import Submitted
from contextbase.gate.draft import Draft
from contextbase.gate.model import CommitAnswer
from contextbase.gate.turns import Turn
from contextbase.gate.working_tree import WorkingTree
from contextbase.ids import PrincipalId
from contextbase.storage.landing import HeadState

__all__ = ["Batch", "ProjectQueue", "QueuedCommit"]

MOST_IN_BATCH: Final = 256
MOST_BATCH_BYTES: Final = 32 * 1024 * 1024
MOST_KNOWN: Final = 50_000


@dataclass(kw_only=True, slots=True, eq=False)
class QueuedCommit:
    submitted: Submitted
    answer: "asyncio.Future[CommitAnswer]"
    size: int  # of the contents it brings along
    since: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, submitted: Submitted) -> "QueuedCommit":
        size = sum(len(change.content.inline or b"") for change in submitted.request.changes if change.content)
        return cls(submitted=submitted, answer=asyncio.get_running_loop().create_future(), size=size)

    @property
    def identity(self) -> tuple[PrincipalId, str] | None:
        """What makes it the same request as another; None: nothing does."""
        key = self.submitted.request.key
        return None if key is None else (self.submitted.caller.principal.id, key)

    def waited(self) -> float:
        return time.monotonic() - self.since

    def resolve(self, answer: CommitAnswer | Exception) -> None:
        if self.answer.done():
            return  # its caller has gone away
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
            self.answer.exception()  # its caller may go away before it looks: that is no error of ours
        else:
            self.answer.set_result(answer)


@dataclass(kw_only=True, slots=True)
class Batch:
    """Requests that are to be written together."""

    entries: list[QueuedCommit] = field(default_factory=list)
    draft: Draft | None = None
    is_plain: bool = False  # it has no draft, and gets none: it is planned when it is written

    def stands_on(self, tree: WorkingTree | None) -> bool:
        return self.draft is not None and self.draft.tree is tree


@dataclass(kw_only=True, slots=True)
class ProjectQueue:
    """Who waits for one project, the task that serves them while there is anybody, and what it knows of the head."""

    turn: Turn
    waiting: deque[QueuedCommit] = field(default_factory=deque)
    leader: asyncio.Task[None] | None = None
    head: HeadState | None = None  # as this process left it, or will have left it when the batch under way is written
    tree: WorkingTree | None = None  # what is known of that head
    being_written: list[QueuedCommit] = field(default_factory=list)
    _arrival: "asyncio.Future[None] | None" = None

    def join(self, entry: QueuedCommit) -> None:
        self.waiting.append(entry)
        self._wake()

    def take(self, batch: Batch) -> list[QueuedCommit]:
        """What the batch takes on now: bounded in number and bytes, and no request twice at once."""
        taken: list[QueuedCommit] = []
        size = sum(entry.size for entry in batch.entries)
        known = {entry.identity for entry in (*batch.entries, *self.being_written)} - {None}
        while self.waiting and len(batch.entries) + len(taken) < MOST_IN_BATCH:
            entry = self.waiting[0]
            too_much = size + entry.size > MOST_BATCH_BYTES and (batch.entries or taken)
            if too_much or entry.identity in known:
                break
            taken.append(self.waiting.popleft())
            size += entry.size
            if entry.identity is not None:
                known.add(entry.identity)
        return taken

    async def arrival_or(self, writing: "asyncio.Task[bool]") -> None:
        """Until somebody joins, or the batch under way is written."""
        self._arrival = asyncio.get_running_loop().create_future()
        writing.add_done_callback(self._wake)
        await self._arrival
        writing.remove_done_callback(self._wake)

    def _wake(self, _written: object = None) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def foresee(self, batch: Batch) -> None:
        """The batch is about to be written: from now on the head is known as it will be then."""
        self.being_written = batch.entries
        if batch.draft is not None and len(batch.draft.tree) <= MOST_KNOWN:
            self.know(batch.draft)
        elif batch.entries:
            self.forget()

    def forget(self) -> None:
        """The head may be elsewhere."""
        self.head = self.tree = None

    def know(self, draft: Draft) -> None:
        """What the head will be when the draft is written."""
        self.head, self.tree = draft.next_head, draft.tree

    def fail(self, batch: Batch, error: Exception) -> None:
        """Answer everybody who is not answered yet."""
        for entry in (*batch.entries, *self.being_written, *self.waiting):
            entry.resolve(error)
        self.waiting.clear()
