"""Blobs as plain read-only files in a local folder: `objects/ab/cdef…`, durable when a put returns."""

import errno
import os
import re
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.durable import explained, flush, make_folder
from contextbase.errors import BlobMissing
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE, HashCheck, length_of, missing, range_end
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.storage.blobs.spool import Spooled, SpoolFolder
from contextbase.threads import in_thread

__all__ = ["LocalBlobStore"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # non-blocking: a pipe there must not hang us
_NO_PLAIN_FILE: Final = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO}  # nothing, a symlink, a socket
_LIST_BATCH: Final = 1000


class LocalBlobStore:
    """Every access below `root` is relative to a folder handle and follows no symlink."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._objects = self._root / "objects"
        self._place = f"the folder {self._objects}"
        self._temporary = SpoolFolder(self._root / "tmp", memory_limit=0)
        self._durable_folders: set[Path] = set()  # those whose names we know to be on the disk

    def path(self, content_hash: ContentHash) -> Path:
        """Where the blob's file is, or would be: for mirrors that reflink or copy it. Never write there."""
        return self._objects / _folder_name(content_hash) / _file_name(content_hash)

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        async with self._temporary.spooled(content, expected=expected, reuse=False) as spooled:
            return await in_thread(self._publish, spooled)

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        whole = start == 0 and end is None
        check = HashCheck(content_hash, place=self._place) if whole else None
        file = _OpenBlob(self._objects, content_hash)
        try:
            stop = range_end(start=start, end=end, size=await in_thread(file.open))
            while start < stop:
                piece = await in_thread(file.read, start, min(PIECE_SIZE, stop - start), check)
                if not piece:
                    break  # cut short while we read: the hash tells
                start += len(piece)
                yield piece
            if check is not None:
                check.finish()
        finally:
            file.close()

    async def size(self, content_hash: ContentHash) -> int | None:
        return await in_thread(self._size, content_hash)

    async def exists(self, content_hash: ContentHash) -> bool:
        return await self.size(content_hash) is not None

    async def list(self) -> AsyncGenerator[StoredBlob, None]:
        blobs = self._scan()
        try:
            while batch := await in_thread(_take, blobs):
                for blob in batch:
                    yield blob
        finally:
            blobs.close()

    async def delete(self, content_hash: ContentHash) -> bool:
        return await in_thread(self._delete, content_hash)

    async def verify(self, content_hash: ContentHash) -> int:
        return await length_of(self.get(content_hash))

    def _publish(self, spooled: Spooled) -> StoredBlob:
        """Give the finished file its name. The order is the guarantee: the data is on disk before the name is."""
        name = _file_name(spooled.hash)
        with explained(self._root):
            folder = self._open_folder_for_writing(_folder_name(spooled.hash))
            try:
                if not _is_there(folder, name, size=spooled.size):
                    _seal(spooled.file)
                    try:
                        os.link(spooled.file, name, dst_dir_fd=folder, follow_symlinks=False)
                    except FileExistsError:
                        if not _is_there(folder, name, size=spooled.size):  # damaged, or put there by hand
                            _replace(spooled.file, folder, name)
                # Also when the name was there already: the other writer may not have come this far yet.
                flush(folder)
                return _published(folder, name, spooled)
            finally:
                os.close(folder)

    def _open_folder_for_writing(self, folder_name: str) -> int:
        for folder in (self._root, self._objects, self._objects / folder_name):
            if folder not in self._durable_folders:
                make_folder(folder)
                self._durable_folders.add(folder)
        try:
            return _open_folder(self._objects, folder_name)
        except FileNotFoundError:  # removed by hand since
            make_folder(self._objects / folder_name)
            return _open_folder(self._objects, folder_name)

    def _size(self, content_hash: ContentHash) -> int | None:
        file = _OpenBlob(self._objects, content_hash)
        try:
            return file.open()
        except BlobMissing:
            return None
        finally:
            file.close()

    def _delete(self, content_hash: ContentHash) -> bool:
        with explained(self._root):
            try:
                folder = _open_folder(self._objects, _folder_name(content_hash))
            except FileNotFoundError:
                return False
            try:
                os.unlink(_file_name(content_hash), dir_fd=folder)
                flush(folder)
            except FileNotFoundError:
                return False
            finally:
                os.close(folder)
        return True

    def _scan(self) -> Generator[StoredBlob, None, None]:
        with explained(self._root):
            for folder in _entries(self._objects):
                if not re.fullmatch(r"[0-9a-f]{2}", folder.name) or not folder.is_dir(follow_symlinks=False):
                    continue
                for entry in _entries(self._objects / folder.name):
                    if not re.fullmatch(r"[0-9a-f]{62}", entry.name) or not entry.is_file(follow_symlinks=False):
                        continue
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted while we list
                    yield _stored(ContentHash.parse(folder.name + entry.name), status)


class _OpenBlob:
    """One blob's file, open for reading. Apart from `close`, every method blocks."""

    def __init__(self, objects: Path, content_hash: ContentHash) -> None:
        self._objects = objects
        self._content_hash = content_hash
        self._descriptor = -1

    def open(self) -> int:
        """Open it and return its size; `BlobMissing` when it is not there, or is not a plain file."""
        with explained(self._objects):
            try:
                folder = _open_folder(self._objects, _folder_name(self._content_hash))
                try:
                    self._descriptor = os.open(_file_name(self._content_hash), _FILE, dir_fd=folder)
                finally:
                    os.close(folder)
            except OSError as error:
                if error.errno in _NO_PLAIN_FILE:
                    raise missing(self._content_hash, place=f"the folder {self._objects}") from error
                raise
            status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise missing(self._content_hash, place=f"the folder {self._objects}")
        return status.st_size

    def read(self, offset: int, length: int, check: HashCheck | None) -> bytes:
        with explained(self._objects):
            piece = os.pread(self._descriptor, length, offset)
        if check is not None:
            check.update(piece)
        return piece

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor != -1:
            os.close(descriptor)


def _folder_name(content_hash: ContentHash) -> str:
    return str(content_hash)[:2]


def _file_name(content_hash: ContentHash) -> str:
    return str(content_hash)[2:]


def _open_folder(objects: Path, folder_name: str) -> int:
    parent = os.open(objects, _FOLDER)
    try:
        return os.open(folder_name, _FOLDER, dir_fd=parent)
    finally:
        os.close(parent)


def _is_there(folder: int, name: str, *, size: int) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size


def _replace(path: Path, folder: int, name: str) -> None:
    """By a second name of the file, which keeps its first: it may be put again."""
    second = path.with_name(f"{uuid4().hex}{path.suffix}")
    os.link(path, second, follow_symlinks=False)
    os.rename(second, name, dst_dir_fd=folder)


def _seal(path: Path) -> None:
    """Make it read-only, and sure to be on the disk."""
    file = os.open(path, _FILE)
    try:
        os.fchmod(file, 0o444)
        flush(file)
    finally:
        os.close(file)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except FileNotFoundError:
        return  # nothing was put yet


def _take(blobs: Iterator[StoredBlob]) -> tuple[StoredBlob, ...]:
    return tuple(islice(blobs, _LIST_BATCH))


def _published(folder: int, name: str, spooled: Spooled) -> StoredBlob:
    try:
        return _stored(spooled.hash, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:  # a delete came right after: the put is done all the same
        return StoredBlob(hash=spooled.hash, size=spooled.size)


def _stored(content_hash: ContentHash, status: os.stat_result) -> StoredBlob:
    return StoredBlob(hash=content_hash, size=status.st_size, stored_at=datetime.fromtimestamp(status.st_mtime, UTC))
