"""Files of a workspace that is the sandbox's own: brought in and taken out as archives.

An archive begins with a member that says what else is to be known: which paths are gone, and whether it has everything.
What changed since the server last asked is found by comparing the state of each file with a table of that moment.
"""

import contextlib
import fnmatch
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import PurePosixPath
from typing import IO, Any, Final
from uuid import uuid4

from contextbase.agents.model import AgentPlace
from contextbase.agents.registry import adapters
from contextbase.executor.workspace_archive import Exactly
from contextbase.executor.workspace_tree import PathRefused, WorkspaceTree

__all__ = ["ABOUT", "WorkspaceTransfer"]

ABOUT: Final = ".contextbase/transfer.json"
"""The first member of an archive."""

_OURS: Final = ".contextbase"  # of the server's own folder
_STRAY: Final = frozenset({".claude", ".codex", ".opencode"})  # at the root: written there by mistake
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EMPTY: Final = ("directory",)

State = tuple[Any, ...]
"""Of an entry: another one is another content, or may be."""


class WorkspaceTransfer:
    """Every method blocks."""

    def __init__(self, place: AgentPlace) -> None:
        self._tree = WorkspaceTree(place.workspace)
        self._tables: dict[str, dict[str, State]] = {}  # the last two, by the token that the server has
        data = place.agent_data.name
        self._left_out = [
            f"{data}/{adapter.paths.folder}/{pattern}"
            for adapter in adapters()
            for pattern in (*adapter.paths.cache, *adapter.paths.secret)
        ]

    def knows(self, token: str) -> bool:
        return token in self._tables

    def restore(self, archive: IO[bytes], since: str | None) -> dict[str, Any]:
        """Take away what is gone and put in what the archive has. What was changed here since the server's token stays
        as it is, and is named in `kept`."""
        known = dict(self._tables.get(since or "", {}))
        kept: list[str] = []
        with tarfile.open(fileobj=archive, mode="r|") as source:
            about = _about(source)
            for path in about["removed"]:
                if self._is_as_known(path, known):
                    self._remove(path)
                    known.pop(path, None)
                else:
                    kept.append(path)
            for folder, members in groupby(iter(source.next, None), key=lambda member: _folder_of(member.name)):
                with self._tree.folder(folder, makes=True) as handle:
                    for member in members:
                        if self._is_as_known(member.name, known):
                            known[member.name] = _put(source, member, handle)
                        else:
                            kept.append(member.name)
        return {"token": self._remembered(known), "kept": kept}

    def changes(self, since: str | None) -> "ChangedFiles":
        """Of the files, since the token; all of them, if it is not known any more."""
        before = self._tables.get(since or "")
        now = dict(self._states())
        changed = [path for path, state in now.items() if before is None or before.get(path) != state]
        removed = [] if before is None else [path for path in before if path not in now and self._is_taken(path)]
        token = self._remembered(now)
        about = {"token": token, "is_whole": before is None, "removed": removed}
        return ChangedFiles(tree=self._tree, about=about, paths={path: now[path] for path in changed})

    def _remembered(self, table: dict[str, State]) -> str:
        token = uuid4().hex
        self._tables = {**dict(list(self._tables.items())[-1:]), token: table}
        return token

    def _is_taken(self, path: str) -> bool:
        return not any(fnmatch.fnmatchcase(path, pattern) for pattern in self._left_out)

    def _states(self) -> Iterator[tuple[str, State]]:
        """Of files and links, and of folders that are empty."""
        with self._tree.folder("", makes=False) as handle:
            yield from self._below(handle, "")

    def _below(self, handle: int, above: str) -> Iterator[tuple[str, State]]:
        for name in sorted(os.listdir(handle)):
            path = f"{above}{name}"
            if (not above and (name in _STRAY or name == _OURS)) or not self._is_taken(path):
                continue
            try:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                        yield path, _state(status)
                    continue
                below = os.open(name, _FOLDER, dir_fd=handle)
            except OSError:
                continue  # gone meanwhile, or shut
            try:
                with os.scandir(below) as listing:
                    is_empty = next(listing, None) is None
                if is_empty:
                    yield path, _EMPTY
                yield from self._below(below, f"{path}/")
            finally:
                os.close(below)

    def _is_as_known(self, path: str, known: Mapping[str, State]) -> bool:
        """Whether nothing of the agent's would be lost with what stands there."""
        try:
            with self._tree.folder(_folder_of(path), makes=False) as handle:
                status = os.stat(_name_of(path), dir_fd=handle, follow_symlinks=False)
        except (PathRefused, OSError):
            return True  # nothing
        if stat.S_ISDIR(status.st_mode):
            return known.get(path) == _EMPTY
        return known.get(path) == _state(status)

    def _remove(self, path: str) -> None:
        """With the folders above it that are empty then."""
        with contextlib.suppress(OSError, PathRefused), self._tree.folder(_folder_of(path), makes=False) as handle:
            _clear(handle, _name_of(path))
        for parent in PurePosixPath(path).parents:
            if str(parent) == ".":
                return
            try:
                with self._tree.folder(_folder_of(str(parent)), makes=False) as handle:
                    os.rmdir(parent.name, dir_fd=handle)
            except (PathRefused, OSError):
                return


class ChangedFiles:
    def __init__(self, *, tree: WorkspaceTree, about: Mapping[str, Any], paths: Mapping[str, State]) -> None:
        self._tree = tree
        self._about = about
        self._paths = paths

    def write(self, sink: IO[bytes]) -> None:
        """What goes away meanwhile is left out: the next archive tells that it is gone."""
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            content = json.dumps(dict(self._about)).encode()
            about = tarfile.TarInfo(ABOUT)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
            for path, state in self._paths.items():
                with contextlib.suppress(PathRefused, OSError):
                    self._add(archive, path, state)
                archive.members = []  # type: ignore[attr-defined]  # it remembers every member otherwise

    def _add(self, archive: tarfile.TarFile, path: str, state: State) -> None:
        member = tarfile.TarInfo(path)
        if state == _EMPTY:
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
            return
        if stat.S_ISLNK(state[0]):
            with self._tree.folder(_folder_of(path), makes=False) as handle:
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(_name_of(path), dir_fd=handle)
            archive.addfile(member)
            return
        with self._tree.opened(path) as file:
            status = os.fstat(file.fileno())
            member.size, member.mode = status.st_size, stat.S_IMODE(status.st_mode) & 0o777
            archive.addfile(member, Exactly(file, status.st_size))  # type: ignore[arg-type]  # it only reads


def _about(source: tarfile.TarFile) -> dict[str, Any]:
    member = source.next()
    file = None if member is None or member.name != ABOUT else source.extractfile(member)
    about = json.loads(file.read()) if file is not None else {}
    if not isinstance(about.get("removed"), list):
        raise PathRefused(f"An archive of files begins with {ABOUT}.")
    return about


def _put(source: tarfile.TarFile, member: tarfile.TarInfo, handle: int) -> State:
    name = _name_of(member.name)
    if member.isdir():
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=handle)
        return _EMPTY
    _clear(handle, name)
    if member.issym():
        os.symlink(member.linkname, name, dir_fd=handle)
        return _state(os.stat(name, dir_fd=handle, follow_symlinks=False))
    content = source.extractfile(member)
    descriptor = os.open(name, _NEW, 0o755 if member.mode & 0o100 else 0o644, dir_fd=handle)
    with os.fdopen(descriptor, "wb") as file:
        while content is not None and (piece := content.read(1 << 18)):
            file.write(piece)
        file.flush()
        return _state(os.fstat(descriptor))


def _clear(handle: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=handle)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        os.rmdir(name, dir_fd=handle)


def _state(status: os.stat_result) -> State:
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]
