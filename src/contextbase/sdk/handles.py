"""What a block of the clients holds: a workspace, or a lease."""

import time
from dataclasses import dataclass
from pathlib import Path

from contextbase.errors import LeaseLost
from contextbase.wire.lease import LeaseView
from contextbase.wire.workspace import WorkspaceCompleteView, WorkspaceView

__all__ = ["HeldLease", "OpenWorkspace"]


@dataclass(kw_only=True, slots=True)
class OpenWorkspace:
    """A workspace for the time of a block."""

    path: Path
    view: WorkspaceView
    completed: WorkspaceCompleteView | None = None
    """What became of the work; None until the block has ended."""

    def say_left_open(self, error: BaseException) -> None:
        """Note on an exception that the work is kept, and where."""
        error.add_note(
            f"The workspace of {self.view.agent} is left open with the work in it, at {self.path}: "
            "go on there, then complete or abandon it."
        )


class HeldLease:
    """A lease that is renewed in the background. Pass its `token` to commits that must not come too late."""

    def __init__(self, view: LeaseView) -> None:
        self.token = view.token
        self.pattern = view.pattern
        self.owner = view.owner
        self._ttl_seconds = view.ttl_seconds
        self._renewed_at = time.monotonic()
        self._is_refused = False

    @property
    def is_lost(self) -> bool:
        """Whether it may have gone to somebody else by now."""
        return self._is_refused or time.monotonic() - self._renewed_at >= self._ttl_seconds

    def check(self) -> None:
        """Raise `LeaseLost` if it may have gone to somebody else."""
        if self.is_lost:
            raise LeaseLost(
                f"The lease on {self.pattern} was lost; acquire it again, and look at what changed meanwhile.",
                token=self.token,
            )

    def note_renewed(self, asked_at: float) -> None:
        """It was renewed by a request that was sent at this moment of `time.monotonic`."""
        self._renewed_at = asked_at

    def note_refused(self) -> None:
        """It has ended, or belongs to somebody else."""
        self._is_refused = True
