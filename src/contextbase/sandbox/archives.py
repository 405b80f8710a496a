"""Tar streams, rewritten on their way: what goes into a sandbox is checked, what comes out is always the same bytes."""

import asyncio
import io
import tarfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TypeVar

from contextbase.errors import InvalidInput
from contextbase.workspaces.model import Owner

__all__ = ["checked", "normalized"]

_PIECE = 256 << 10
_QUEUED = 4  # pieces that wait for a slow reader
_STORED = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
_PERMISSIONS = 0o777  # no set-user-id, set-group-id or sticky bit comes in or goes out


def checked(
    archive: AsyncIterator[bytes], owner: Owner, links: Collection[PurePosixPath] = ()
) -> AsyncGenerator[bytes, None]:
    """The archive as the owner's own files, ready to be unpacked below a folder that has these links. Raises
    `InvalidInput` for a member that would land elsewhere, directly or through a link, and for what is neither file,
    folder nor link."""
    return _rewritten(archive, _Checker(owner, links).members)


def normalized(archive: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Its files, folders and links in their order, without what depends on who packed them."""
    return _rewritten(archive, _plain_member)


Result = TypeVar("Result")
Rewrite = Callable[[tarfile.TarInfo], Iterator[tarfile.TarInfo]]


class _Checker:
    def __init__(self, owner: Owner, links: Collection[PurePosixPath]) -> None:
        self._owner = owner
        self._links_there = links
        self._links: set[PurePosixPath] = set()
        self._folders: set[PurePosixPath] = {PurePosixPath()}

    def members(self, member: tarfile.TarInfo) -> Iterator[tarfile.TarInfo]:
        path = self._path(member.name)
        # Each folder is named before what is in it: a link that comes in its place meanwhile is replaced, not followed.
        for parent in reversed(path.parents):
            if parent not in self._folders:
                self._folders.add(parent)
                folder = tarfile.TarInfo(str(parent))
                folder.mtime = int(time.time())
                yield self._plain(folder, tarfile.DIRTYPE, 0o755)
        if path in self._folders and member.isdir():
            return
        kind = tarfile.REGTYPE if member.isreg() else member.type
        if kind not in _STORED:
            raise InvalidInput(f"{member.name!r} in the archive is neither a file, a folder nor a link.")
        clean = tarfile.TarInfo(str(path))
        clean.size, clean.mtime = member.size if kind == tarfile.REGTYPE else 0, int(member.mtime)
        if kind == tarfile.LNKTYPE:
            clean.linkname = str(self._path(member.linkname))
        elif kind == tarfile.SYMTYPE:
            clean.linkname = member.linkname
            self._links.add(path)
        elif kind == tarfile.DIRTYPE:
            self._folders.add(path)
        yield self._plain(clean, kind, member.mode)

    def _path(self, name: str) -> PurePosixPath:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InvalidInput(f"{name!r} in the archive leads out of the folder it is unpacked in.")
        if any(place in self._links for place in (path, *path.parents)):
            raise InvalidInput(f"{name!r} in the archive goes through a link of the same archive.")
        if any(place in self._links_there for place in path.parents):
            raise InvalidInput(f"{name!r} in the archive goes through a link that is there already.")
        return path

    def _plain(self, member: tarfile.TarInfo, kind: bytes, mode: int) -> tarfile.TarInfo:
        member.type, member.mode = kind, mode & _PERMISSIONS
        member.uid, member.gid = self._owner.uid, self._owner.gid
        return member


def _plain_member(member: tarfile.TarInfo) -> Iterator[tarfile.TarInfo]:
    kind = tarfile.REGTYPE if member.isreg() else member.type
    path = PurePosixPath(member.name)
    if kind not in _STORED or not path.parts:
        return
    plain = tarfile.TarInfo(str(path))
    plain.type, plain.mode, plain.mtime = kind, member.mode & _PERMISSIONS, int(member.mtime)
    if kind == tarfile.REGTYPE:
        plain.size = member.size
    elif kind == tarfile.SYMTYPE:
        plain.linkname = member.linkname
    elif kind == tarfile.LNKTYPE:
        plain.linkname = str(PurePosixPath(member.linkname))
    yield plain


async def _rewritten(archive: AsyncIterator[bytes], rewrite: Rewrite) -> AsyncGenerator[bytes, None]:
    """tarfile reads and writes blocking files, so it works in a thread, a few pieces ahead of the reader at most."""
    bridge = _Bridge(archive)
    work = asyncio.create_task(asyncio.to_thread(_rewrite, bridge, rewrite))
    try:
        while piece := await bridge.pieces.get():
            yield piece
        await work
    finally:
        bridge.abandoned.set()
        with suppress(_Abandoned):
            await work


def _rewrite(bridge: "_Bridge", rewrite: Rewrite) -> None:
    try:
        with (
            tarfile.open(fileobj=bridge, mode="r|", bufsize=_PIECE) as source,
            tarfile.open(fileobj=bridge, mode="w|", bufsize=_PIECE, format=tarfile.PAX_FORMAT) as target,
        ):
            while (member := source.next()) is not None:
                for plain in rewrite(member):
                    has_content = plain.type == tarfile.REGTYPE and plain.size
                    target.addfile(plain, source.extractfile(member) if has_content else None)
                for tar in (source, target):  # they remember every member otherwise
                    tar.members = []  # type: ignore[attr-defined]  # typeshed does not name it
            while bridge.read(_PIECE):  # the archive's end is not yet the source's, which may have failed
                pass
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise InvalidInput(f"This is not a tar archive that can be read: {error}") from error
    finally:
        bridge.end()


class _Abandoned(Exception):
    """Nobody wants the rest."""


class _Bridge(io.RawIOBase):
    """A blocking file on top of an asynchronous source and a bounded queue, whose last piece is empty."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        super().__init__()
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue(_QUEUED)
        self.abandoned = asyncio.Event()
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._left = b""

    def read(self, size: int = -1) -> bytes:
        if not self._left:
            self._left = self._in_loop(self._next_of_source())
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def write(self, data: bytes) -> int:  # type: ignore[override]  # tarfile writes nothing but bytes
        if data:
            self._in_loop(self.pieces.put(data))
        return len(data)

    def end(self) -> None:
        self._in_loop(self.pieces.put(b""))

    async def _next_of_source(self) -> bytes:
        """Much at once: the way into the thread costs more than the bytes."""
        pieces, size = [], 0
        while size < _PIECE and (piece := await anext(self._source, None)) is not None:
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def _in_loop(self, work: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(self._unless_abandoned(work), self._loop).result()

    async def _unless_abandoned(self, work: Coroutine[None, None, Result]) -> Result:
        task, abandoned = asyncio.ensure_future(work), asyncio.ensure_future(self.abandoned.wait())
        try:
            await asyncio.wait((task, abandoned), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise _Abandoned
            return task.result()
        finally:
            task.cancel()
            abandoned.cancel()
