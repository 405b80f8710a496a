"""Blobs as objects of an S3 bucket, through obstore. The keys are those of the local store: `objects/ab/cdef…`."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from contextbase.errors import BlobTruncated, InvalidInput
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE, HashCheck, length_of, missing, range_end
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.s3_errors import explain
from contextbase.storage.blobs.spool import Spooled, SpoolFolder
from contextbase.threads import ended

if TYPE_CHECKING:
    from obstore import GetResult  # obstore has it for type checkers only

__all__ = ["S3BlobStore"]

PART_SIZE: Final = 8 * 1024 * 1024  # what is longer goes up in parts of this size
PARTS_AT_ONCE: Final = 3
UPLOADS_AT_ONCE: Final = 8  # bounds memory: each upload holds up to PARTS_AT_ONCE + 1 parts
_MOST_PARTS: Final = 10_000  # S3's own limit
_LONGEST_SIGNATURE: Final = timedelta(days=7)  # S3's own limit

_LEAST_CHUNK: Final = 256 * 1024

_SIZE_ATTRIBUTE: Final = "contextbase-size"  # kept with the object, to tell a truncated one from a corrupted one
_KEY: Final = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})")


class S3BlobStore:
    def __init__(self, connection: S3Connection, *, spool: SpoolFolder) -> None:
        self._connection = connection
        self._place = f"the bucket '{connection.bucket}' at {connection.url}"
        self._spool = spool
        self._objects = connection.open(total_timeout=connection.request_timeout)
        # A long read takes as long as its reader does; that it goes on at all is what the read time-out watches.
        self._streams = connection.open(total_timeout=timedelta(days=1))
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)
        self._turns: WeakValueDictionary[ContentHash, asyncio.Lock] = WeakValueDictionary()

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        async with self._spool.spooled(content, expected=expected) as spooled:
            in_parts = spooled.size > PART_SIZE
            async with self._turn(spooled.hash) as waited, self._uploads:
                # A short blob is sent without looking first: S3 itself refuses to write it twice.
                probably_there = waited or in_parts
                if probably_there and await self._size_if_there(spooled.hash) == spooled.size:
                    pass
                elif in_parts:
                    await self._put_in_parts(spooled)
                else:
                    await self._put_at_once(spooled)
        return StoredBlob(hash=spooled.hash, size=spooled.size)

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        whole = start == 0 and end is None
        found = await (self._find(content_hash) if whole else self._find_range(content_hash, start, end))
        if found is None:
            return
        check = HashCheck(content_hash, place=self._place, promised=_promised_size(found)) if whole else None
        chunks = found.stream(min_chunk_size=_LEAST_CHUNK)
        while True:
            with self._explained():
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            for offset in range(0, len(chunk), PIECE_SIZE):
                piece = chunk[offset : offset + PIECE_SIZE]
                if check is not None:
                    await check.update_off_loop(piece)
                yield piece
        if check is not None:
            check.finish()

    async def size(self, content_hash: ContentHash) -> int | None:
        size = await self._size_if_there(content_hash)
        if size is None:
            await self._check_bucket(content_hash)
        return size

    async def exists(self, content_hash: ContentHash) -> bool:
        return await self.size(content_hash) is not None

    async def list(self) -> AsyncGenerator[StoredBlob, None]:
        pages = aiter(self._objects.list("objects", chunk_size=1000))
        while True:
            with self._explained():
                page = await anext(pages, None)
            if page is None:
                return
            for item in page:
                if parts := _KEY.fullmatch(item["path"]):
                    content_hash = ContentHash.parse(parts[1] + parts[2])
                    yield StoredBlob(hash=content_hash, size=item["size"], stored_at=item["last_modified"])

    async def delete(self, content_hash: ContentHash) -> bool:
        if not await self.exists(content_hash):
            return False
        with self._explained():
            await self._objects.delete_async(_key(content_hash))
        return True

    async def verify(self, content_hash: ContentHash) -> int:
        return await length_of(self.get(content_hash))

    async def presigned_get(self, content_hash: ContentHash, *, lifetime: timedelta) -> str:
        """A URL that anyone may read this one blob with, until `lifetime` (at most a week) has passed."""
        if not timedelta(seconds=1) <= lifetime <= _LONGEST_SIGNATURE:
            raise InvalidInput(f"A signed URL lives from a second to a week, not {lifetime}.")
        with self._explained():
            return await obstore.sign_async(self._objects, "GET", _key(content_hash), lifetime)

    @asynccontextmanager
    async def _turn(self, content_hash: ContentHash) -> AsyncIterator[bool]:
        """One upload of a content at a time, as the next will find it done; says whether there was one to wait for.
        Servers take seconds to settle a race for one key (SeaweedFS: one second for each contender)."""
        lock = self._turns.setdefault(content_hash, asyncio.Lock())
        waited = lock.locked()
        async with lock:
            yield waited

    async def _put_at_once(self, spooled: Spooled) -> None:
        key, attributes = _key(spooled.hash), _attributes(spooled)
        data = b"".join([piece async for piece in spooled])
        with self._explained():
            try:
                await self._objects.put_async(key, data, mode="create", attributes=attributes)
                return
            except AlreadyExistsError:
                pass  # or being written just now by another, who may yet fail
        if await self._size_if_there(spooled.hash) != spooled.size:
            with self._explained():
                await self._objects.put_async(key, data, use_multipart=False, attributes=attributes)

    async def _put_in_parts(self, spooled: Spooled) -> None:
        """obstore cannot ask S3 to complete an upload in parts only when there is no such object. Two servers that
        write a blob at the same moment both write it whole and, as its name is its hash, alike."""
        abandoned = False

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in spooled:
                if abandoned:
                    raise _Abandoned
                yield piece

        with self._explained():
            upload = asyncio.ensure_future(
                self._objects.put_async(
                    _key(spooled.hash),
                    pieces(),
                    attributes=_attributes(spooled),
                    chunk_size=max(PART_SIZE, -(-spooled.size // _MOST_PARTS)),
                    max_concurrency=PARTS_AT_ONCE,
                )
            )
            try:
                await asyncio.shield(upload)
            except asyncio.CancelledError:
                # Dropping the upload would leave its parts in the bucket, unseen and paid for. When its source
                # fails, obstore tells the server to forget them.
                abandoned = True
                await ended(upload)
                raise
        stored = await self._size_if_there(spooled.hash)
        if stored != spooled.size:
            raise BlobTruncated(
                f"Of the {spooled.size} bytes sent for blob {spooled.hash}, {self._place} keeps {stored or 0}. "
                "Try again, and check the server if it stays so.",
                hash=str(spooled.hash),
                size=stored,
                promised=spooled.size,
            )

    async def _find(self, content_hash: ContentHash) -> "GetResult":
        with self._explained(content_hash):
            return await self._streams.get_async(_key(content_hash))

    async def _find_range(self, content_hash: ContentHash, start: int, end: int | None) -> "GetResult | None":
        """None for an empty range, which S3 does not know."""
        size = await self.size(content_hash)
        if size is None:
            raise missing(content_hash, place=self._place)
        stop = range_end(start=start, end=end, size=size)
        if start == stop:
            return None
        with self._explained(content_hash):
            return await self._streams.get_async(_key(content_hash), options={"range": (start, stop)})

    async def _size_if_there(self, content_hash: ContentHash) -> int | None:
        """Its size, or None: when it is not there or, as S3 does not tell these apart here, when the bucket is not."""
        with self._explained():
            try:
                return (await self._objects.head_async(_key(content_hash)))["size"]
            except FileNotFoundError:
                return None

    async def _check_bucket(self, content_hash: ContentHash) -> None:
        """`BucketMissing` when there is no bucket; the listing it asks for is empty and cheap."""
        with self._explained():
            await self._objects.list_with_delimiter_async(_key(content_hash))

    @contextmanager
    def _explained(self, content_hash: ContentHash | None = None) -> Iterator[None]:
        """Our errors instead of obstore's; with a hash, an object that is not there is that missing blob."""
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            problem = explain(error, bucket=self._connection.bucket, endpoint=self._connection.url)
            if content_hash is not None and problem.details["s3_code"] == "NoSuchKey":
                problem = missing(content_hash, place=self._place)
            raise problem from error


class _Abandoned(Exception):
    """Ends an upload whose caller was cancelled."""


def _key(content_hash: ContentHash) -> str:
    name = str(content_hash)
    return f"objects/{name[:2]}/{name[2:]}"


def _attributes(spooled: Spooled) -> dict[str, str]:
    return {_SIZE_ATTRIBUTE: str(spooled.size)}


def _promised_size(found: "GetResult") -> int:
    said = str(found.attributes.get(_SIZE_ATTRIBUTE, ""))
    return int(said) if said.isdecimal() else found.meta["size"]
