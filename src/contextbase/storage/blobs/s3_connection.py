"""How to reach a bucket: all of it said by us, nothing picked up from the machine."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from obstore.store import S3Store

from contextbase.errors import InvalidSettings

__all__ = ["S3Connection"]


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Connection:
    bucket: str
    prefix: str = ""  # below which all our keys are
    endpoint: str = ""  # empty: Amazon's own for the region
    region: str = "us-east-1"
    access_key_id: str
    secret_access_key: str = field(repr=False)
    allow_http: bool = False
    connect_timeout: timedelta = timedelta(seconds=5)
    request_timeout: timedelta = timedelta(seconds=60)  # for one part up, or for the next bytes down

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}", self.bucket):
            raise InvalidSettings(f"{self.bucket[:80]!r} is not the name of an S3 bucket.")
        url = urlsplit(self.url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise InvalidSettings(f"The S3 endpoint {self.endpoint[:80]!r} is not an http(s) address.")
        if url.username or url.password:
            raise InvalidSettings("The S3 endpoint holds a user name or password; keys have settings of their own.")
        if url.scheme == "http" and not self.allow_http:
            raise InvalidSettings(f"The S3 endpoint {self.endpoint} is not encrypted. Use https, or allow http.")

    @property
    def url(self) -> str:
        return self.endpoint.rstrip("/") or f"https://s3.{self.region}.amazonaws.com"

    def open(self, *, total_timeout: timedelta) -> S3Store:
        """A client of the bucket that gives up on a request after `total_timeout`, and does not retry."""
        with _without_ambient_settings():
            return S3Store(
                self.bucket,
                prefix=self.prefix.strip("/") or None,
                config={
                    "endpoint": self.url,
                    "region": self.region,
                    "access_key_id": self.access_key_id,
                    "secret_access_key": self.secret_access_key,
                    "checksum_algorithm": "sha256",  # the server checks every request's body against it
                },
                client_options={
                    "allow_http": self.allow_http,
                    "connect_timeout": self.connect_timeout,
                    "read_timeout": self.request_timeout,
                    "timeout": total_timeout,
                },
                retry_config={"max_retries": 0},
            )


@contextmanager
def _without_ambient_settings() -> Iterator[None]:
    """obstore adds what it finds in AWS_* to what it is given, with no way to say no: a session token, another
    encryption or endpoint. It reads them only while a store is made."""
    hidden = {name: os.environ.pop(name) for name in tuple(os.environ) if name.startswith("AWS_")}
    try:
        yield
    finally:
        os.environ.update(hidden)
