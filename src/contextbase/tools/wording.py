"""How answers are put for models: short, and with what to do next. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from contextbase.errors import ContextbaseError, Forbidden, TooBusy, Unavailable

__all__ = ["bytes_shown", "error_text", "fitting", "moment_shown"]

_UNITS = ("B", "KB", "MB", "GB", "TB")


def bytes_shown(size: int) -> str:
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def moment_shown(at: datetime | None) -> str:
    return "unknown" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def fitting(lines: Iterable[str], most: int) -> tuple[list[str], bool]:
    """The first lines that have room, at least one, and whether that is all."""
    taken: list[str] = []
    room = most
    for line in lines:
        room -= len(line) + 1
        if taken and room < 0:
            return taken, False
        taken.append(line)
    return taken, True


def listed(words: Sequence[str], most: int) -> str:
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def error_text(error: ContextbaseError) -> str:
    """The error's own sentence, and what a model can do about it where the sentence leaves that open."""
    if isinstance(error, TooBusy):
        return f"{error.message} Wait a moment and call the tool again."
    if isinstance(error, Unavailable):
        return f"{error.message} It may work a little later; if not, tell the user."
    if isinstance(error, Forbidden):
        return f"{error.message} Your token does not allow it: do not try another way, tell the user."
    return error.message
