"""The kernel's files of a control group: how they are read and written, and when a group can go."""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

__all__ = [
    "PERIOD",
    "clear_old",
    "leave",
    "names_below",
    "number",
    "processes",
    "quota",
    "read",
    "remove",
    "table",
    "write",
]

PERIOD: Final = 100_000
"""Microseconds in which a group may use its share of the processor."""

_OLD: Final = 60  # seconds


def quota(percent: float) -> int:
    return max(1000, int(PERIOD * percent / 100))


def read(file: str) -> bytes | None:
    """None: an older kernel has no such file. Not by pathlib: this is done a dozen times for each command."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def write(file: str, value: int | str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    except OSError as error:
        error.filename = file
        raise
    finally:
        os.close(descriptor)


def number(file: str | None) -> int | None:
    text = None if file is None else read(file)
    return None if text is None else int(text)


def table(file: str | None) -> dict[str, int]:
    text = None if file is None else read(file)
    return {name.decode(): int(value) for name, value in (line.split() for line in (text or b"").splitlines())}


def names_below(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def clear_old(folder: Path) -> None:
    for name in names_below(folder):
        below = folder / name
        with contextlib.suppress(OSError):  # somebody is in it, or it is gone
            if time.time() - below.stat().st_ctime > _OLD:
                below.rmdir()


def leave(folder: Path) -> None:
    with contextlib.suppress(OSError):  # in use
        folder.rmdir()


def processes(folder: Path) -> list[int]:
    found: list[int] = []
    for place, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            found += map(int, (Path(place) / "cgroup.procs").read_text(encoding="ascii").split())
    return found


def remove(folder: Path) -> bool:
    for name in names_below(folder):
        if not remove(folder / name):
            return False
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # busy
    return True
