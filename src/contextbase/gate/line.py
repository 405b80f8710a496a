"""Who waits for a project, and how many of them one batch takes on."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from contextbase.gate.batch import Submitted
from contextbase.gate.model import CommitAnswer
from contextbase.ids import PrincipalId, Seq

__all__ = ["Line", "Waiting"]

MOST_IN_BATCH: Final = 256
MOST_BATCH_BYTES: Final = 32 * 1024 * 1024


@dataclass(kw_only=True, slots=True)
class Waiting:
    submitted: Submitted
    answer: "asyncio.Future[CommitAnswer]"
    size: int  # of the contents it brings along

    def resolve(self, answer: CommitAnswer | Exception) -> None:
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
            self.answer.exception()  # its caller may have gone away: that is no error of ours
        else:
            self.answer.set_result(answer)


@dataclass(kw_only=True, slots=True)
class Line:
    """Who waits for one project, and the task that serves them while there is anybody."""

    waiting: deque[Waiting] = field(default_factory=deque)
    leader: asyncio.Task[None] | None = None
    left: Seq | None = None  # the head as this process left it
    contended: bool = False  # another process moved it since

    def take(self) -> list[Waiting]:
        """What one batch takes on: bounded in number and bytes, and no idempotency key twice."""
        batch: list[Waiting] = []
        keys: set[tuple[PrincipalId, str]] = set()
        size = 0
        while self.waiting and len(batch) < MOST_IN_BATCH:
            entry = self.waiting[0]
            key = entry.submitted.request.key
            identity = (entry.submitted.caller.principal.id, key) if key is not None else None
            if batch and (size + entry.size > MOST_BATCH_BYTES or identity in keys):
                break
            batch.append(self.waiting.popleft())
            size += entry.size
            if identity is not None:
                keys.add(identity)
        return batch
