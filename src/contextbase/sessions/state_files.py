"""What a session's folder holds beside the project's files: found by handle, so that no link leads out of the folder.

That is the agent program's own data below `.agent_data`, what is ignored, what the gate would not take (names that no
project has, files that look like credentials), and the versions that were refused or put aside in `.contextbase`.
Caches that programs make again by themselves stay out.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from contextbase.agents.model import AgentPaths
from contextbase.errors import TooLarge
from contextbase.ids import RESERVED_FOLDER
from contextbase.storage.model import Kind
from contextbase.workspaces.editor import CONFLICTS, REFUSED
from contextbase.workspaces.folder import Folder, listing_of
from contextbase.workspaces.ignore_rules import AGENT_DATA, OWN_EXCLUDES
from contextbase.workspaces.model import WorkspaceChanges

__all__ = ["StateFile", "StateLimits", "StateRules", "state_files"]

_MADE_AGAIN: Final = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox"}
)
_STRAY: Final = frozenset({".codex", ".claude", ".opencode"})  # at the root: written there by mistake
_PUT_ASIDE: Final = tuple(f"{RESERVED_FOLDER}/{name}" for name in (CONFLICTS, REFUSED))


@dataclass(frozen=True, kw_only=True, slots=True)
class StateLimits:
    files: int = 50_000
    bytes: int = 2 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class StateFile:
    """An entry as it was found. `name` is relative to the folder, as the file system has it."""

    name: bytes
    kind: Kind
    size: int = 0
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StateRules:
    """Which of the agent programs' own files are left out: what they make again, and what must not be stored."""

    left_out: tuple[str, ...] = ()

    @classmethod
    def of_agents(cls, agents: Iterable[AgentPaths]) -> "StateRules":
        patterns = [
            f"{AGENT_DATA}/{paths.folder}/{pattern}" for paths in agents for pattern in (*paths.cache, *paths.secret)
        ]
        return cls(left_out=tuple(patterns))

    def takes(self, path: str) -> bool:
        return not any(fnmatchcase(path, pattern) for pattern in self.left_out)


def state_files(
    folder: Folder, found: WorkspaceChanges, late: Collection[str], rules: StateRules, limits: StateLimits
) -> list[StateFile]:
    """In name order. Blocks. `TooLarge` when there is more than may be stored: nobody should believe that it was.
    `late`: what was written to files after a merge had replaced them."""
    roots = {AGENT_DATA, *_PUT_ASIDE, *late}
    roots |= {ignored.path.rstrip("/") for ignored in found.ignored if ignored.rule.source != OWN_EXCLUDES}
    roots |= {os.fsdecode(reported.name) for reported in found.reported}
    entries: dict[bytes, StateFile] = {}
    total = 0
    for root in sorted(roots):
        if root.partition("/")[0] in _STRAY:
            continue
        for entry in _below(folder, root, rules):
            if entry.name in entries or os.fsdecode(entry.name) in _PUT_ASIDE:  # our own folder, or in its way
                continue
            entries[entry.name] = entry
            total += entry.size
            if len(entries) > limits.files or total > limits.bytes:
                raise TooLarge(
                    f"The session's own files are more than {limits.files} or have more than {limits.bytes} bytes, so "
                    "they cannot be stored. Remove what is not needed from its folder, above all what is ignored."
                )
    return [entries[name] for name in sorted(entries)]


def _below(folder: Folder, root: str, rules: StateRules) -> Iterator[StateFile]:
    """An entry and, for a folder, all in it; a folder is named only if it is empty."""
    parent, _, name = root.rpartition("/")
    try:
        with folder.opened(parent) as handle:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return  # gone since
    is_put_aside = root.partition("/")[0] == RESERVED_FOLDER  # nobody makes that again, whatever it is called
    waiting = [(root, status)]
    while waiting:
        path, status = waiting.pop()
        if not is_put_aside and (path.rpartition("/")[2] in _MADE_AGAIN or not rules.takes(path)):
            continue
        if not stat.S_ISDIR(status.st_mode):
            if (entry := _entry(path, status)) is not None:
                yield entry
            continue
        try:
            with folder.opened(path) as handle:
                inside = listing_of(handle)
        except OSError:
            continue
        if not inside:
            yield StateFile(name=os.fsencode(path), kind=Kind.DIRECTORY)
        waiting += [(f"{path}/{name}", status) for name, status in inside]


def _entry(path: str, status: os.stat_result) -> StateFile | None:
    """None for pipes, sockets and devices: they have no content."""
    name = os.fsencode(path)
    if stat.S_ISLNK(status.st_mode):
        return StateFile(name=name, kind=Kind.SYMLINK, size=status.st_size)
    if stat.S_ISREG(status.st_mode):
        return StateFile(name=name, kind=Kind.FILE, size=status.st_size, executable=bool(status.st_mode & stat.S_IXUSR))
    return None
