"""What goes wrong between us and a bucket: each thing has its own error, code, and a sentence that helps; and what
the S3 store does beyond the contract."""

import asyncio
import os
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.support.http_answers import served_by
from tests.support.proxy import Misbehaviour, misbehaving_proxy
from tests.support.s3_server import S3Server

from contextbase.backoff import Backoff
from contextbase.errors import (
    BlobCorrupted,
    BlobStoreDenied,
    BlobStoreUnavailable,
    BlobTruncated,
    BucketMissing,
    ContextbaseError,
    InvalidInput,
)
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import length_of
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.retry import RetryingBlobStore
from contextbase.storage.blobs.s3 import PART_SIZE, S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder

SOME_HASH = ContentHash.of(b"some blob")

EVERY_OPERATION: dict[str, Callable[[BlobStore], Awaitable[object]]] = {
    "put": lambda store: store.put(stream(b"short")),
    "put in parts": lambda store: store.put(stream(bytes(PART_SIZE + 1))),
    "get": lambda store: length_of(store.get(SOME_HASH)),
    "get a range": lambda store: length_of(store.get(SOME_HASH, start=1, end=2)),
    "size": lambda store: store.size(SOME_HASH),
    "exists": lambda store: store.exists(SOME_HASH),
    "list": lambda store: anext(store.list(), None),
    "delete": lambda store: store.delete(SOME_HASH),
    "verify": lambda store: store.verify(SOME_HASH),
}
every_operation = pytest.mark.parametrize("operation", EVERY_OPERATION.values(), ids=EVERY_OPERATION)


async def stream(content: bytes) -> AsyncIterator[bytes]:
    yield content


def key_of(content_hash: ContentHash) -> str:
    return f"objects/{str(content_hash)[:2]}/{str(content_hash)[2:]}"


@pytest.fixture
def spool(tmp_path: Path) -> SpoolFolder:
    return SpoolFolder(tmp_path / "spool")


async def failure_of(
    operation: Callable[[BlobStore], Awaitable[object]], connection: S3Connection, spool: SpoolFolder
) -> ContextbaseError:
    """The error; it names bucket and endpoint, and no secret is anywhere in it or in what caused it."""
    with pytest.raises(ContextbaseError) as caught:
        await operation(S3BlobStore(connection, spool=spool))
    error = caught.value
    assert connection.bucket in error.message
    assert connection.url in error.message
    assert connection.secret_access_key not in f"{error!r} {error.details} {error.__cause__!r} {connection!r}"
    return error


@every_operation
@pytest.mark.parametrize("wrong", ["access_key_id", "secret_access_key"])
async def test_wrong_credentials_are_denied(
    s3_connection: S3Connection,
    spool: SpoolFolder,
    operation: Callable[[BlobStore], Awaitable[object]],
    wrong: str,
) -> None:
    wrong_id = replace(s3_connection, access_key_id="not-the-right-one")
    wrong_secret = replace(s3_connection, secret_access_key="not-the-right-one")

    error = await failure_of(operation, wrong_id if wrong == "access_key_id" else wrong_secret, spool)

    assert (type(error), error.code) == (BlobStoreDenied, "blob_store_denied")


@every_operation
async def test_a_missing_bucket_is_said_to_be_missing(
    s3_server: S3Server, spool: SpoolFolder, operation: Callable[[BlobStore], Awaitable[object]]
) -> None:
    error = await failure_of(operation, s3_server.connection(bucket="no-such-bucket"), spool)

    assert (type(error), error.code) == (BucketMissing, "bucket_missing")


@every_operation
async def test_an_endpoint_where_nobody_listens_is_unavailable(
    s3_connection: S3Connection, spool: SpoolFolder, operation: Callable[[BlobStore], Awaitable[object]]
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        connection = replace(s3_connection, endpoint=f"http://127.0.0.1:{nobody.getsockname()[1]}")

        error = await failure_of(operation, connection, spool)

    assert (type(error), error.code) == (BlobStoreUnavailable, "blob_store_unavailable")
    assert "cannot be reached" in error.message


@every_operation
async def test_an_endpoint_that_never_answers_is_unavailable_after_the_time_out(
    s3_connection: S3Connection, spool: SpoolFolder, operation: Callable[[BlobStore], Awaitable[object]]
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        connection = replace(
            s3_connection,
            endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}",
            request_timeout=timedelta(milliseconds=200),
        )

        error = await failure_of(operation, connection, spool)

    assert type(error) is BlobStoreUnavailable
    assert "did not answer in time" in error.message


async def test_an_upload_the_server_kept_only_in_part_is_truncated(
    s3_connection: S3Connection, spool: SpoolFolder
) -> None:
    with server_that_loses_the_last_byte() as endpoint:
        error = await failure_of(
            lambda store: store.put(stream(bytes(PART_SIZE + 1))), replace(s3_connection, endpoint=endpoint), spool
        )

    assert (type(error), error.code) == (BlobTruncated, "blob_truncated")


@contextmanager
def server_that_loses_the_last_byte() -> Iterator[str]:
    """No real server can be had that does this."""
    received = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.endswith("?uploads="):
                self.answer(b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
            else:
                self.answer(b"<CompleteMultipartUploadResult><ETag>all</ETag></CompleteMultipartUploadResult>")

        def do_PUT(self) -> None:
            nonlocal received
            received += len(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(b"")

        def do_HEAD(self) -> None:
            self.send_response(200 if received else 404)
            self.send_header("Content-Length", str(max(received - 1, 0)))
            self.send_header("Last-Modified", "Sun, 15 Nov 2026 12:00:00 GMT")
            self.send_header("ETag", "all")
            self.end_headers()

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", "part")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with served_by(Handler) as port:
        yield f"http://127.0.0.1:{port}"


async def test_an_object_that_lost_bytes_is_truncated(s3_connection: S3Connection, spool: SpoolFolder) -> None:
    content = os.urandom(100_000)
    stored = await S3BlobStore(s3_connection, spool=spool).put(stream(content))
    stranger = s3_connection.open(total_timeout=timedelta(seconds=10))
    attributes = (await stranger.get_async(key_of(stored.hash))).attributes
    await stranger.put_async(key_of(stored.hash), content[:-1], attributes=attributes)

    error = await failure_of(lambda store: store.verify(stored.hash), s3_connection, spool)

    assert (type(error), error.code) == (BlobTruncated, "blob_truncated")


async def test_an_object_that_was_tampered_with_is_corrupted(s3_connection: S3Connection, spool: SpoolFolder) -> None:
    stored = await S3BlobStore(s3_connection, spool=spool).put(stream(b"pay 100 to Alice"))
    stranger = s3_connection.open(total_timeout=timedelta(seconds=10))
    await stranger.put_async(key_of(stored.hash), b"pay 900 to Alice")

    error = await failure_of(lambda store: store.verify(stored.hash), s3_connection, spool)

    assert (type(error), error.code) == (BlobCorrupted, "blob_corrupted")


@pytest.mark.parametrize("length", [1000, PART_SIZE + 1])
async def test_content_damaged_on_its_way_up_is_not_stored(
    s3_server: S3Server, s3_connection: S3Connection, spool: SpoolFolder, length: int
) -> None:
    misbehaviour = Misbehaviour(alter_request=lambda data: data.replace(b"a" * 500, b"a" * 499 + b"b"))
    async with misbehaving_proxy(s3_connection.url, misbehaviour) as endpoint:
        error = await failure_of(
            lambda store: store.put(stream(b"a" * length)), replace(s3_connection, endpoint=endpoint), spool
        )

    assert type(error) is BlobStoreUnavailable  # sending it again may well work
    assert [blob async for blob in S3BlobStore(s3_connection, spool=spool).list()] == []
    assert s3_server.unfinished_uploads() == []


async def test_a_read_that_breaks_off_is_unavailable_and_resumes_when_retried(
    s3_connection: S3Connection, spool: SpoolFolder
) -> None:
    content = os.urandom(5_000_000)
    stored = await S3BlobStore(s3_connection, spool=spool).put(stream(content))
    misbehaviour = Misbehaviour(cut_answers_after=2_000_000, cuts_left=1)
    async with misbehaving_proxy(s3_connection.url, misbehaviour) as endpoint:
        connection = replace(s3_connection, endpoint=endpoint)

        error = await failure_of(lambda store: store.verify(stored.hash), connection, spool)
        misbehaviour.cuts_left = 2
        retrying = RetryingBlobStore(S3BlobStore(connection, spool=spool), spool=spool, backoff=Backoff(first=0.01))
        read = b"".join([piece async for piece in retrying.get(stored.hash)])

    assert type(error) is BlobStoreUnavailable
    assert misbehaviour.cuts_left == 0
    assert read == content


async def test_an_upload_in_parts_that_is_cancelled_leaves_no_parts_behind(
    s3_server: S3Server, s3_connection: S3Connection, spool: SpoolFolder, tmp_path: Path
) -> None:
    store = S3BlobStore(s3_connection, spool=spool)
    put = asyncio.create_task(store.put(stream(os.urandom(12 * PART_SIZE))))
    for _ in range(2000):
        if await asyncio.to_thread(s3_server.unfinished_uploads):
            break
        await asyncio.sleep(0.005)
    put.cancel()
    with pytest.raises(asyncio.CancelledError):
        await put

    assert s3_server.unfinished_uploads() == []
    assert [blob async for blob in store.list()] == []
    assert list((tmp_path / "spool").iterdir()) == []


@pytest.mark.parametrize("length", [1000, PART_SIZE + 1])
async def test_servers_that_race_for_one_blob_all_succeed(
    s3_connection: S3Connection, spool: SpoolFolder, length: int
) -> None:
    servers = [S3BlobStore(s3_connection, spool=spool) for _ in range(4)]

    stored = await asyncio.gather(*(server.put(stream(bytes(length))) for server in servers))

    assert [blob.hash async for blob in servers[0].list()] == [stored[0].hash]
    assert await servers[0].verify(stored[0].hash) == length


async def test_what_the_machine_says_about_clouds_is_not_listened_to(
    s3_connection: S3Connection, spool: SpoolFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ambient = {
        "AWS_ACCESS_KEY_ID": "another",
        "AWS_SESSION_TOKEN": "of another",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "AWS_SERVER_SIDE_ENCRYPTION": "aws:kms",
        "AWS_SKIP_SIGNATURE": "true",
    }
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)

    store = S3BlobStore(s3_connection, spool=spool)

    assert {name: os.environ[name] for name in ambient} == ambient
    stored = await store.put(stream(b"content"))
    assert await store.verify(stored.hash) == 7


async def test_a_listing_goes_past_one_page_and_leaves_out_what_is_not_a_blob(
    s3_connection: S3Connection, spool: SpoolFolder
) -> None:
    names = {ContentHash.of(number.to_bytes(2, "big")) for number in range(1100)}
    stranger = s3_connection.open(total_timeout=timedelta(seconds=30))
    for key in ("objects/README", "objects/ab/notes.txt", "elsewhere", *map(key_of, names)):
        await stranger.put_async(key, b"")

    listed = [blob.hash async for blob in S3BlobStore(s3_connection, spool=spool).list()]

    assert len(listed) == len(names)
    assert set(listed) == names


async def test_a_signed_url_reads_one_blob_without_keys(s3_connection: S3Connection, spool: SpoolFolder) -> None:
    store = S3BlobStore(s3_connection, spool=spool)
    stored = await store.put(stream(b"for you"))

    url = await store.presigned_get(stored.hash, lifetime=timedelta(minutes=1))

    assert await asyncio.to_thread(fetch, url) == (200, b"for you")
    tampered = url.replace("X-Amz-Expires=60", "X-Amz-Expires=600")
    assert (await asyncio.to_thread(fetch, tampered))[0] == 403
    assert s3_connection.secret_access_key not in url


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(seconds=-1), timedelta(days=8)])
async def test_a_signed_url_lives_for_a_week_at_most(
    s3_connection: S3Connection, spool: SpoolFolder, lifetime: timedelta
) -> None:
    with pytest.raises(InvalidInput):
        await S3BlobStore(s3_connection, spool=spool).presigned_get(SOME_HASH, lifetime=lifetime)


def fetch(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own loopback server
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
