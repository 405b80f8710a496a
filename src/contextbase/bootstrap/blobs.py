"""Where large blobs go: the data folder, or a bucket."""

from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.errors import InvalidSettings
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.retry import RetryingBlobStore
from contextbase.storage.blobs.s3 import S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder

__all__ = ["bucket_store", "large_blob_store"]


def large_blob_store(settings: Settings, data: DataFolder, spool: SpoolFolder) -> BlobStore:
    if settings.storage.blob_location.bucket is None:
        return LocalBlobStore(data.blobs)
    return RetryingBlobStore(bucket_store(settings, spool), spool=spool)


def bucket_store(settings: Settings, spool: SpoolFolder) -> S3BlobStore:
    if settings.s3.access_key_id is None or settings.s3.secret_access_key is None:
        raise InvalidSettings(
            "Blobs are to go to S3, but the keys are not set: CONTEXTBASE_S3_ACCESS_KEY_ID and "
            "CONTEXTBASE_S3_SECRET_ACCESS_KEY."
        )
    endpoint = settings.s3.endpoint or ""
    connection = S3Connection(
        bucket=settings.storage.blob_location.bucket or "",
        prefix=settings.storage.blob_location.prefix,
        endpoint=endpoint,
        region=settings.s3.region,
        access_key_id=settings.s3.access_key_id,
        secret_access_key=settings.s3.secret_access_key.get_secret_value(),
        allow_http=endpoint.startswith("http://"),
    )
    return S3BlobStore(connection, spool=spool)
