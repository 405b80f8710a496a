"""Fixtures that several folders of tests share."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.support.s3_server import S3Server, running_s3_server

from contextbase.storage.blobs.s3_connection import S3Connection


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, one per test process."""
    with running_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_connection(s3_server: S3Server) -> S3Connection:
    """A place in its bucket that no other test uses."""
    return s3_server.connection(prefix=f"test-{uuid4().hex}")
