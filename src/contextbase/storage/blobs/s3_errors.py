"""What an S3 server or the way to it says, as our errors: which bucket, where, and what to do next."""

import re
from typing import Final

from contextbase.errors import BlobStoreDenied, BlobStoreUnavailable, BucketMissing, ContextbaseError, Misconfigured

__all__ = ["explain"]

# obstore gives the server's answer as text only; it holds the request's URL and the response, never a key.
_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_TIMED_OUT: Final = re.compile(r"TimedOut|timed out", re.IGNORECASE)

# Refusals that say the request was damaged or slow on its way, not that it was wrong.
_WORTH_ANOTHER_TRY: Final = {
    "BadDigest",
    "ConditionalRequestConflict",
    "IncompleteBody",
    "InvalidDigest",
    "NoSuchUpload",
    "OperationAborted",
    "RequestTimeout",
    "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
}


def explain(error: Exception, *, bucket: str, endpoint: str) -> ContextbaseError:
    """The error to raise instead of what obstore raised."""
    text = str(error)
    status = int(found[1]) if (found := _STATUS.search(text)) else None
    code = found[1] if (found := _CODE.search(text)) else None
    details = {"bucket": bucket, "endpoint": endpoint, "status": status, "s3_code": code}
    said = f"{status} {code}" if code else str(status)
    if code == "NoSuchBucket":
        return BucketMissing(
            f"The bucket '{bucket}' does not exist at {endpoint}. Create it, or correct the bucket's name.", **details
        )
    if code == "RequestTimeTooSkewed":
        return BlobStoreDenied(
            f"The S3 server at {endpoint} refuses us: this machine's clock differs from its own. Set the clock.",
            **details,
        )
    if status in (401, 403):
        return BlobStoreDenied(
            f"The S3 server at {endpoint} refuses access to the bucket '{bucket}' ({said}). Check the access key, its "
            "secret, and that it may read, write, list and delete there.",
            **details,
        )
    if status is None:
        happened = "did not answer in time" if _TIMED_OUT.search(text) else "cannot be reached, or broke off its answer"
        return BlobStoreUnavailable(
            f"The S3 server at {endpoint} (bucket '{bucket}') {happened}. Check the address, the network and that the "
            "server is up; then try again.",
            **details,
        )
    if status >= 500 or status in (409, 429) or code in _WORTH_ANOTHER_TRY:
        return BlobStoreUnavailable(
            f"The S3 server at {endpoint} (bucket '{bucket}') could not do it just now ({said}). Try again.", **details
        )
    return Misconfigured(
        f"The S3 server at {endpoint} does not accept our request for the bucket '{bucket}' ({said}). Check the "
        "endpoint and the region.",
        **details,
    )
