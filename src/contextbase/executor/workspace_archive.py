"""A folder of the workspace as a tar archive, made while it is sent."""

import asyncio
import os
import stat
import tarfile
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from pathlib import Path
from typing import IO, Any, Final

from contextbase.executor.workspace_tree import PathRefused, WorkspaceTree

__all__ = ["Exactly", "archived", "piped"]

_PIECE: Final = 1 << 16


async def archived(root: Path, path: str, *, without: Collection[str] = ()) -> AsyncIterator[bytes]:
    """Files, folders and links, links as links. What goes away meanwhile is left out, and what is at the top and has
    one of the names `without`."""
    async for piece in piped(lambda sink: _pack(root, path, sink, without)):
        yield piece


async def piped(pack: Callable[[IO[bytes]], None]) -> AsyncIterator[bytes]:
    """What a function of another thread writes, while it does."""
    reading, writing = os.pipe()
    packing = asyncio.create_task(asyncio.to_thread(_written, pack, writing))
    pipe = os.fdopen(reading, "rb", buffering=0)
    try:
        while piece := await asyncio.to_thread(pipe.read, _PIECE):
            yield piece
        await packing
    finally:
        pipe.close()  # the thread ends with it
        await asyncio.gather(packing, return_exceptions=True)


def _written(pack: Callable[[IO[bytes]], None], writing: int) -> None:
    with os.fdopen(writing, "wb") as sink:
        pack(sink)


def _pack(root: Path, path: str, sink: IO[bytes], without: Collection[str]) -> None:
    tree = WorkspaceTree(root)
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        entries, _ = tree.entries(path, depth=1 << 20, most=1 << 30)
        for entry in entries:
            if entry["path"].partition("/")[0] in without:
                continue
            try:
                _add(archive, tree, entry)
            except (PathRefused, FileNotFoundError):
                continue


def _add(archive: tarfile.TarFile, tree: WorkspaceTree, entry: Mapping[str, Any]) -> None:
    path, kind = entry["path"], entry["kind"]
    member = tarfile.TarInfo(path)
    member.mtime = int(entry["mtime"])
    if kind == "file":
        with tree.opened(path) as file:
            status = os.fstat(file.fileno())
            member.size, member.mode = status.st_size, stat.S_IMODE(status.st_mode) & 0o777
            archive.addfile(member, Exactly(file, status.st_size))  # type: ignore[arg-type]  # it only reads
    elif kind == "directory":
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(member)
    elif kind == "symlink":
        member.type, member.linkname = tarfile.SYMTYPE, entry["target"]
        archive.addfile(member)


class Exactly:
    """As many bytes as the head promised, also when the file shrinks or grows meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        data += bytes(min(size, self._left) - len(data))
        self._left -= len(data)
        return data
