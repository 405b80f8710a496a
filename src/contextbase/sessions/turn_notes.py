"""What an agent is told before a turn: what became of its last changes, and what others changed meanwhile. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contextbase.workspaces.refresh.service import Refreshed

__all__ = ["CUT_OFF", "MISSED", "turn_notes"]

_MOST_PATHS: Final = 20
_SENTENCES: Final = {
    "merged": "was merged with what others changed",
    "in_review": "conflicts with what others changed and waits for a person's decision; do not make it again",
    "superseded": "was superseded by somebody else's version",
    "refused": "was refused",
    "uncommitted": "is not committed yet",
    "discarded": "was thrown away by a person; do not make it again unless you are asked to",
}
CUT_OFF: Final = "Your last turn was cut off before its end. Look at what is there already, and go on from it."
MISSED: Final = "Since your last turn another agent worked in this conversation:"


def turn_notes(landed: Mapping[str, Any] | None, refreshed: Refreshed | None, *, more: Sequence[str] = ()) -> str:
    """Empty when there is nothing to tell."""
    lines = [*more, *_landed(landed or {})]
    if refreshed is not None:
        arrived = [str(one.path) for one in refreshed.arrived]
        if arrived:
            lines.append(f"Others changed since your last turn: {_listed(arrived)}.")
        if refreshed.merged:
            lines.append(f"Others' changes were merged into files you have changed: {_listed(refreshed.merged)}.")
        if refreshed.kept:
            kept = [str(one.path) for one in refreshed.kept]
            lines.append(f"Others changed these files too, and you still have your own version: {_listed(kept)}.")
    return "\n".join(lines)


def _landed(landed: Mapping[str, Any]) -> list[str]:
    lines = []
    for path in landed.get("paths", ())[:_MOST_PATHS]:
        sentence = _SENTENCES.get(path.get("status", ""))
        if sentence is not None:
            reason = f" ({path['reason']})" if path.get("reason") else ""
            lines.append(f"Your change of {path['path']} {sentence}{reason}.")
    return lines


def _listed(paths: Sequence[object]) -> str:
    shown = ", ".join(str(path) for path in paths[:_MOST_PATHS])
    more = len(paths) - _MOST_PATHS
    return f"{shown} and {more} more" if more > 0 else shown
