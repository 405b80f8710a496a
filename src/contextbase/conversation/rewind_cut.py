"""What a rewind hides of a session's rows."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from contextbase.conversation.model import SessionEvent

__all__ = ["RewindCut"]


class _Placed(Protocol):
    @property
    def run_id(self) -> UUID: ...

    @property
    def position(self) -> int: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RewindCut:
    runs: frozenset[UUID]  # all of them
    run_id: UUID
    keep: int | None  # the last position of that run that stays; None: all of it stays

    @classmethod
    def of(cls, event: SessionEvent) -> "RewindCut":
        runs, keep = event.data["runs"], event.data["keep"]
        hidden = frozenset(UUID(str(run)) for run in runs) if isinstance(runs, list) else frozenset()
        return cls(runs=hidden, run_id=event.run_id, keep=keep if isinstance(keep, int) else None)

    def hides(self, row: _Placed) -> bool:
        is_after = self.keep is not None and row.run_id == self.run_id and row.position > self.keep
        return row.run_id in self.runs or is_after
