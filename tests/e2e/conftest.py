"""The API that a module of tests shares and what it logs; a server, and the command line that talks to it."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.support.api import MAX_BODY, Api, opened_api, url_of
from tests.support.cli import Cli
from tests.support.postgres import database_copy, reachable_folder
from tests.support.run_world import remove_sandboxes
from tests.support.server import Done, ServerProcess, start_server
from tests.support.workspaces import unmount_all

from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.interfaces.cli.main import main
from contextbase.logs import trace_id


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(
    embedded_database_server: DatabaseAddress, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Api]:
    async with database_copy(embedded_database_server, "template0") as address:
        data = tmp_path_factory.mktemp("data")
        settings = Settings(data=data, database_url=url_of(address), max_request_bytes=MAX_BODY)
        try:
            async with opened_api(settings) as api:
                yield api
        finally:
            await remove_sandboxes(data)
            unmount_all(data)


@pytest.fixture
def log() -> Iterator[list[tuple[str, logging.LogRecord]]]:
    """Every log record with the trace id that was current."""
    records: list[tuple[str, logging.LogRecord]] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append((trace_id.get(), record))

    keeper, root = Keeper(), logging.getLogger()
    level = root.level
    root.addHandler(keeper)
    root.setLevel(logging.DEBUG)
    yield records
    root.removeHandler(keeper)
    root.setLevel(level)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with reachable_folder() as folder:
        try:
            with start_server(folder / "data") as server:
                yield server
        finally:
            asyncio.run(remove_sandboxes(folder / "data"))
            unmount_all(folder)


@pytest.fixture
def cb(server: ServerProcess, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs a command in this process, about a project of the test's own, as the owner."""
    for name in list(os.environ):
        if name.startswith("CONTEXTBASE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CONTEXTBASE_DATA", str(server.data))
    monkeypatch.setenv("CONTEXTBASE_PROJECT", f"p-{uuid4().hex[:10]}")

    def run(*arguments: str, **variables: str) -> Done:
        capfdbinary.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["contextbase", *arguments])
            for name, value in variables.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        written = capfdbinary.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code=code or 0, stdout=written.out.decode(), stderr=written.err.decode())

    assert run("project", "create", os.environ["CONTEXTBASE_PROJECT"]).code == 0
    return run
