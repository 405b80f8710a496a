"""Data folders for the embedded PostgreSQL."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.embedded import (
    copy,
)
from tests.support.postgres import reachable_folder
from tests.support.require import require_root

from contextbase.data_folder import DataFolder
from contextbase.db.embedded import EmbeddedPostgres


@pytest.fixture(scope="module")
def made_once() -> Iterator[Path]:
    """A data folder whose cluster is made, to copy: making one takes seconds."""
    with reachable_folder() as folder, asyncio.Runner() as runner:
        server = EmbeddedPostgres(folder / "data" / "postgres")
        DataFolder(folder / "data").create()
        runner.run(server.start())
        runner.run(server.stop())
        yield folder / "data"


@pytest.fixture
def empty_folder() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture
def data(made_once: Path, empty_folder: Path) -> DataFolder:
    """A data folder of the test's own with a cluster in it."""
    copy(made_once, empty_folder / "data")
    return DataFolder(empty_folder / "data")


@pytest.fixture
def as_root() -> None:
    """For what only root has to care about: becoming somebody else."""
    require_root()
