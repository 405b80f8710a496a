import pytest

from contextbase.errors import (
    BlobStoreDenied,
    BlobStoreUnavailable,
    BucketMissing,
    ContextbaseError,
    InvalidSettings,
    Misconfigured,
)
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.s3_errors import explain


def connection(*, bucket: str = "blobs", endpoint: str = "", allow_http: bool = False) -> S3Connection:
    return S3Connection(
        bucket=bucket,
        endpoint=endpoint,
        allow_http=allow_http,
        region="eu-central-1",
        access_key_id="id",
        secret_access_key="the secret",
    )


def test_without_an_endpoint_it_is_amazons_for_the_region() -> None:
    assert connection().url == "https://s3.eu-central-1.amazonaws.com"


@pytest.mark.parametrize("bucket", ["", "a", "a/b", "../etc", "-dash", "a" * 64, "white space"])
def test_a_bucket_has_a_buckets_name(bucket: str) -> None:
    with pytest.raises(InvalidSettings):
        connection(bucket=bucket)


@pytest.mark.parametrize("endpoint", ["not an address", "ftp://host", "https://", "https://user:password@host"])
def test_an_endpoint_is_an_address_without_keys(endpoint: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        connection(endpoint=endpoint)
    assert "password@" not in caught.value.message


def test_an_unencrypted_endpoint_must_be_allowed() -> None:
    with pytest.raises(InvalidSettings, match="not encrypted"):
        connection(endpoint="http://127.0.0.1:8333")
    assert connection(endpoint="http://127.0.0.1:8333/", allow_http=True).url == "http://127.0.0.1:8333"


def test_the_secret_is_not_shown() -> None:
    assert "the secret" not in repr(connection())


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("status code: 404 Not Found: <Code>NoSuchBucket</Code>", BucketMissing),
        ("status code: 403 Forbidden: ", BlobStoreDenied),
        ("status code: 401 Unauthorized: ", BlobStoreDenied),
        ("status code: 403 Forbidden: <Code>RequestTimeTooSkewed</Code>", BlobStoreDenied),
        ("status code: 503 Service Unavailable: <Code>SlowDown</Code>", BlobStoreUnavailable),
        ("status code: 500 Internal Server Error: ", BlobStoreUnavailable),
        ("status code: 429 Too Many Requests: ", BlobStoreUnavailable),
        ("status code: 400 Bad Request: <Code>RequestTimeout</Code>", BlobStoreUnavailable),
        ("status code: 400 Bad Request: <Code>BadDigest</Code>", BlobStoreUnavailable),
        ("status code: 400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>", Misconfigured),
        ("status code: 301 Moved Permanently: <Code>PermanentRedirect</Code>", Misconfigured),
        ("HTTP error: error sending request", BlobStoreUnavailable),
    ],
)
def test_each_answer_of_a_server_has_its_error(answer: str, kind: type[ContextbaseError]) -> None:
    assert type(explain(OSError(answer), bucket="b", endpoint="https://e")) is kind
