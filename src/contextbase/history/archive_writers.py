"""Tar and zip as streams: each call gives the bytes that are ready by then."""

import io
import stat
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Final, Protocol

from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.vocabulary import ArchiveFormat

__all__ = ["ArchiveEntry", "ArchiveFormat", "ArchiveWriter", "writer_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveEntry:
    path: TreePath
    kind: Kind
    content_hash: ContentHash | None
    size: int
    mode: int
    at: datetime  # when it was committed
    content: bytes | None = None  # if it is short


class ArchiveWriter(Protocol):
    """Gives the archive's bytes as they come about."""

    def begin(self, entry: ArchiveEntry, link: bytes) -> bytes: ...

    def add(self, piece: bytes) -> bytes: ...

    def finish(self, entry: ArchiveEntry) -> bytes:
        """After the last piece of a file."""
        ...

    def end(self) -> bytes: ...


def writer_of(form: ArchiveFormat) -> ArchiveWriter:
    return _ZipWriter() if form is ArchiveFormat.ZIP else _TarWriter(packed=form is ArchiveFormat.TAR_GZ)


class _TarWriter:
    _TYPES: Final = {Kind.FILE: tarfile.REGTYPE, Kind.DIRECTORY: tarfile.DIRTYPE, Kind.SYMLINK: tarfile.SYMTYPE}

    def __init__(self, *, packed: bool) -> None:
        self._packer = zlib.compressobj(wbits=31) if packed else None

    def begin(self, entry: ArchiveEntry, link: bytes) -> bytes:
        header = tarfile.TarInfo(entry.path)
        header.type = self._TYPES[entry.kind]
        header.mode = entry.mode
        header.mtime = int(entry.at.timestamp())
        header.size = entry.size if entry.kind is Kind.FILE else 0
        header.linkname = link.decode("utf-8", "surrogateescape")
        return self.add(header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))

    def add(self, piece: bytes) -> bytes:
        return piece if self._packer is None else self._packer.compress(piece)

    def finish(self, entry: ArchiveEntry) -> bytes:
        return self.add(bytes(-entry.size % tarfile.BLOCKSIZE))

    def end(self) -> bytes:
        last = self.add(bytes(2 * tarfile.BLOCKSIZE))
        return last if self._packer is None else last + self._packer.flush()


class _ZipWriter:
    _TYPES: Final = {Kind.FILE: stat.S_IFREG, Kind.DIRECTORY: stat.S_IFDIR, Kind.SYMLINK: stat.S_IFLNK}

    def __init__(self) -> None:
        self._buffer = _Pipe()
        self._zip = zipfile.ZipFile(self._buffer, "w", zipfile.ZIP_DEFLATED)
        self._open: IO[bytes] = io.BytesIO()  # the file that is being written

    def begin(self, entry: ArchiveEntry, link: bytes) -> bytes:
        at = max(entry.at.astimezone(UTC), datetime(1980, 1, 1, tzinfo=UTC))
        name = f"{entry.path}/" if entry.kind is Kind.DIRECTORY else entry.path
        info = zipfile.ZipInfo(name, at.timetuple()[:6])
        info.create_system = 3  # Unix: the attributes are modes
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (self._TYPES[entry.kind] | entry.mode) << 16
        if entry.kind is Kind.FILE:
            self._open = self._zip.open(info, "w", force_zip64=True)
        else:
            self._zip.writestr(info, link)
        return self._buffer.taken()

    def add(self, piece: bytes) -> bytes:
        self._open.write(piece)
        return self._buffer.taken()

    def finish(self, entry: ArchiveEntry) -> bytes:
        del entry  # its size is known by now
        self._open.close()
        return self._buffer.taken()

    def end(self) -> bytes:
        self._zip.close()
        return self._buffer.taken()


class _Pipe:
    """A file that can only be written to: what zipfile does not have to go back for."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, /) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
