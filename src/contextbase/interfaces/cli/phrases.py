"""How counts and times are written for people."""

from datetime import datetime

__all__ = ["counted", "local_day", "local_time"]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`, `1,000 entries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def local_time(moment: datetime, *, seconds: bool = False) -> str:
    """In the time zone of whoever reads it; JSON has UTC."""
    return f"{moment.astimezone():{'%Y-%m-%d %H:%M:%S' if seconds else '%Y-%m-%d %H:%M'}}"


def local_day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d}"
