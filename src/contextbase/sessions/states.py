"""The states of a run, and which may follow which. Pure; the database refuses what this does not allow."""

from typing import Final

from contextbase.errors import Conflict
from contextbase.vocabulary import RunState

__all__ = ["ACTIVE", "ENDED", "STARTING", "RunState", "check_move", "may_follow"]


ENDED: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED})
STARTING: Final = frozenset({RunState.CLAIMED, RunState.RESTORING, RunState.LINKING, RunState.PREPARING})
ACTIVE: Final = frozenset(RunState) - ENDED - {RunState.QUEUED}
"""At most one run of a session is in one of these."""

_FORWARD: Final = frozenset(
    {
        (RunState.QUEUED, RunState.CLAIMED),
        (RunState.CLAIMED, RunState.RESTORING),
        (RunState.RESTORING, RunState.LINKING),
        (RunState.LINKING, RunState.PREPARING),
        (RunState.PREPARING, RunState.RUNNING),
        (RunState.RUNNING, RunState.WAITING_HUMAN),
        (RunState.WAITING_HUMAN, RunState.RUNNING),
        (RunState.RUNNING, RunState.SYNCING),
        (RunState.WAITING_HUMAN, RunState.SYNCING),
        (RunState.SYNCING, RunState.EXPORTED),
        (RunState.EXPORTED, RunState.SUCCEEDED),
    }
)
_FROM_ANYWHERE: Final = frozenset({RunState.QUEUED, RunState.FAILED, RunState.CANCELED})


def may_follow(before: RunState, after: RunState) -> bool:
    """Whether a run may go from one state to another. Back to 'queued' is its next attempt."""
    if before in ENDED or before is after:
        return False
    return after in _FROM_ANYWHERE or (before, after) in _FORWARD


def check_move(before: RunState, after: RunState) -> None:
    """Raise `Conflict` for a move that no run makes."""
    if not may_follow(before, after):
        raise Conflict(f"A run does not go from '{before}' to '{after}'.")
