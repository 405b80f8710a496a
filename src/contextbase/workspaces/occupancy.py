"""Whether processes are in a plain folder: nothing but the list of all of them tells."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["is_occupied"]

_PROCESSES: Final = Path("/proc")


def is_occupied(folder: str) -> bool:
    """Whether a process works in the folder, or has something in it open. Those that this process may not look at,
    those that know the folder by another path (containers do), and systems without /proc tell nothing."""
    if not _PROCESSES.is_dir():
        return False
    return any(
        place == folder or place.startswith(f"{folder}/")
        for process in _PROCESSES.iterdir()
        if process.name.isdigit()
        for place in _places_of(process)
    )


def _places_of(process: Path) -> Iterator[str]:
    for link in (process / "cwd", process / "root", *_listed(process / "fd")):
        try:
            yield os.readlink(link)  # noqa: PTH115 - a Path would respell what is no path
        except OSError:  # it has ended, or is another account's
            continue
    try:
        mappings = (process / "maps").read_bytes().decode(errors="surrogateescape")
    except OSError:
        return
    for mapping in mappings.splitlines():
        _, permissions, *_, place = mapping.split(maxsplit=5)
        if permissions[1] == "w" and permissions[3] == "s":  # shared: what is written there ends up in the file
            yield place


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
