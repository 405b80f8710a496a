"""Parts of files for people and agents: at most 5,000 characters of text, or 5,000 bytes of anything else."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from contextbase.errors import Conflict, InvalidInput
from contextbase.files.ports import FileContent
from contextbase.files.text_index import BYTES_SNIFFED, Charset, TextIndex, TextScan, candidates
from contextbase.threads import in_thread
from contextbase.vocabulary import SliceEncoding

__all__ = ["MOST_AT_ONCE", "FileSlice", "SliceEncoding", "SliceReader", "part_of_content"]

MOST_AT_ONCE: Final = 5000
_SMALL: Final = 64 * 1024  # decoded faster than handed to a thread
_SCANS_AT_ONCE: Final = 2
_MOST_CHECKPOINTS: Final = 1_000_000  # about 16 MB
_WEIGHT: Final = 32  # of an index, in checkpoints, whatever it holds


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSlice:
    """`start`, `total` and `read_length` count characters of text, and bytes of anything else."""

    content: str
    encoding: SliceEncoding
    charset: Charset | None  # None: it is not text
    start: int
    total: int
    read_length: int


class SliceReader:
    """Remembers where the characters of large files are, by content: a file is read whole for its first slice only."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[Hashable, TextIndex | None] = OrderedDict()
        self._checkpoints = 0
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._scans = asyncio.Semaphore(_SCANS_AT_ONCE)

    async def read(self, content: FileContent, *, offset: int = 0, length: int = MOST_AT_ONCE) -> FileSlice:
        """`length` is the most that is wanted; more than 5,000 is not given. Past the end there is nothing."""
        if offset < 0 or length < 1:
            raise InvalidInput("A read starts at an offset of 0 or more and asks for a length of 1 or more.")
        length = min(length, MOST_AT_ONCE)
        index = await self.index_of(content)
        if index is None:
            start = min(offset, content.size)
            found = await part_of_content(content, start, min(start + length, content.size))
            return FileSlice(
                content=base64.b64encode(found).decode(),
                encoding=SliceEncoding.BASE64,
                charset=None,
                start=start,
                total=content.size,
                read_length=len(found),
            )
        start = min(offset, index.characters)
        text = await _text(content, index, start, min(start + length, index.characters))
        return FileSlice(
            content=text,
            encoding=SliceEncoding.TEXT,
            charset=index.charset,
            start=start,
            total=index.characters,
            read_length=len(text),
        )

    async def text(self, content: FileContent, *, most: int) -> str:
        """A whole text that is known to have no more than so many characters; `Conflict` if it is none by now."""
        index = await self.index_of(content)
        if index is None or index.characters > most:
            raise _changed()
        return await _text(content, index, 0, index.characters)

    async def index_of(self, content: FileContent) -> TextIndex | None:
        """Where its characters are; None: it is not text."""
        identity = content.identity
        if identity is None:
            return await self._scanned(content)
        async with self._turns.setdefault(identity, asyncio.Lock()):
            if identity not in self._indexes:
                self._keep(identity, await self._scanned(content))
            self._indexes.move_to_end(identity)
            return self._indexes[identity]

    async def _scanned(self, content: FileContent) -> TextIndex | None:
        if content.size <= BYTES_SNIFFED:
            return await _scanned(content)
        async with self._scans:
            return await _scanned(content)

    def _keep(self, identity: Hashable, index: TextIndex | None) -> None:
        self._indexes[identity] = index
        self._checkpoints += _weight(index)
        while self._checkpoints > _MOST_CHECKPOINTS and len(self._indexes) > 1:
            _, oldest = self._indexes.popitem(last=False)
            self._checkpoints -= _weight(oldest)


async def part_of_content(content: FileContent, start: int, end: int) -> bytes:
    """All of it at once: for parts known to be small."""
    return b"".join([piece async for piece in content.stream(start, end)])


async def _text(content: FileContent, index: TextIndex, start: int, end: int) -> str:
    if start >= end:
        return ""
    first, stop, skipped = index.span(start, end)
    try:
        decoded = index.charset.text_of(await part_of_content(content, first, stop))
    except UnicodeError:
        raise _changed() from None
    text = decoded[skipped : skipped + end - start]
    if len(text) < end - start:
        raise _changed()
    return text


async def _scanned(content: FileContent) -> TextIndex | None:
    start = await part_of_content(content, 0, min(BYTES_SNIFFED, content.size))
    for charset in candidates(start, is_whole=len(start) == content.size):
        scan = TextScan(charset)
        scan.feed(start)
        async with aclosing(content.stream(len(start), content.size)) as pieces:
            async for piece in pieces:
                if len(piece) <= _SMALL:
                    scan.feed(piece)
                else:
                    await in_thread(scan.feed, piece)
                if not scan.is_text:
                    break
        index = scan.finish()
        if index is not None and index.size != content.size:
            raise _changed()
        if index is not None:
            return index
    return None


def _weight(index: TextIndex | None) -> int:
    return _WEIGHT + (0 if index is None else len(index.counts))


def _changed() -> Conflict:
    return Conflict("The file was changed while it was read. Read it again.")
