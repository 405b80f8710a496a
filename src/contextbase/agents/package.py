"""What carries an agent's program, where the program is, and its version."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["AgentPackage", "found_program", "installed_version", "is_older"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPackage:
    """What carries an agent's program, and the name of its folder among the folders with agent programs."""

    folder: str
    how_to_install: str  # for an operator; FOLDER is one of the folders with agent programs
    python: str | None = None  # the module; one that is installed beside us counts too
    npm: str | None = None
    inside: tuple[str, ...] = ()  # where in its folder the program may be, but for the top and `bin`


def found_program(package: AgentPackage, folders: Sequence[Path]) -> Path | None:
    """In the package's folder in one of these folders; or in PATH."""
    name = package.folder
    for folder in folders:
        for place in (name, f"bin/{name}", *package.inside):
            found = folder / name / place
            if found.is_file() and os.access(found, os.X_OK):
                return found
    on_path = shutil.which(name)
    return None if on_path is None else Path(on_path)


def installed_version(package: AgentPackage, folders: Sequence[Path], environment: Mapping[str, str]) -> str | None:
    """The number in what the program says of its version, asked once for each file; None: it is not there, or does not
    say. Blocks."""
    program = found_program(package, folders)
    if program is None:
        return None
    status = program.stat()
    return _said_version(program, status.st_mtime_ns, status.st_size, frozenset(environment.items()))


@lru_cache(maxsize=16)
def _said_version(program: Path, mtime: int, size: int, environment: frozenset[tuple[str, str]]) -> str | None:
    del mtime, size  # they tell one file from another of the same name
    try:
        done = subprocess.run(
            [program, "--version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+\.\d+[^\s]*", done.stdout)
    return None if found is None else found.group()


def is_older(version: str, other: str) -> bool:
    """By the numbers in front; what has none is not older."""
    mine, others = (re.match(r"\d+(?:\.\d+)*", one) for one in (version, other))
    if mine is None or others is None:
        return False
    return [int(number) for number in mine.group().split(".")] < [int(number) for number in others.group().split(".")]
