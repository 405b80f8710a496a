"""Fixtures that several folders of tests share."""

import asyncio
import compileall
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import hypothesis.core
import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings
from hypothesis.vendor.pretty import RepresentationPrinter
from tests.support.disks import xfs_disk
from tests.support.docker_engine import DockerEngine, running_docker_engine
from tests.support.postgres import database_copy, embedded_server, external_server, named, run_on_server
from tests.support.s3_server import S3Server, running_s3_server

from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import migrate
from contextbase.storage.blobs.s3_connection import S3Connection

# How long an example takes says something about the machine, not about the code. CI tries the same examples every time,
# so that it judges the change at hand; everybody else's runs go on looking for new ones. A failure prints the example,
# and the line that tries it again.
settings.register_profile(
    "contextbase",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CONTEXTBASE_TEST_REQUIRE" in os.environ,
    print_blob=True,
)
settings.load_profile("contextbase")

_TEMPLATE = "contextbase_template"
_LONGEST_NAME = 60_000  # bytes of a variable: Linux takes 128 KB
_SOURCE = Path(__file__).parents[1] / "src"
_TESTS = Path(__file__).parent
_SLOWEST_FIRST = ("e2e/web", "e2e/test_openapi", "e2e/test_benchmarks", "e2e", "contracts", "property", "integration")

# By itself httpx gives up after five seconds, which a busy machine may need for the first answer of a server.
DEFAULT_TIMEOUT_CONFIG.connect = DEFAULT_TIMEOUT_CONFIG.read = DEFAULT_TIMEOUT_CONFIG.write = 120.0

# Many containers say PYTHONDONTWRITEBYTECODE. Then every test process would rewrite every assert again at its start.
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Compile our code once, for the hundreds of commands and servers that tests start. Undo an ignored SIGINT, as in
    a shell's background job: the programs that tests interrupt would inherit it."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(_SOURCE, quiet=1)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that no process waits for another's at the end. Refuse two tests of one name: xdist would
    run one of them."""
    items.sort(key=_place_in_line)
    names = Counter(item.nodeid for item in items)
    doubles = [name for name, number in names.items() if number > 1]
    if doubles:
        raise pytest.UsageError(f"Several tests have the name {doubles[0]}.")
    if lengthy := [name for name in names if len(name) > _LONGEST_NAME]:
        # pytest puts the name into the environment, and no program starts with one of megabytes.
        raise pytest.UsageError(f"Give the parameters of {lengthy[0][:200]} ids of their own: the name is too long.")


def _place_in_line(item: pytest.Item) -> int:
    """Files stay together, and tests of a file in their order."""
    path = item.path.as_posix()
    folders = [f"{_TESTS}/{folder}" for folder in _SLOWEST_FIRST]
    return next((place for place, folder in enumerate(folders) if path.startswith(folder)), len(folders))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let Hypothesis print examples: schemathesis replaces its printer by one that prints nothing, to be faster. Its
    own tests do without the printer as well."""
    if not hasattr(getattr(item, "module", None), "schemathesis"):
        hypothesis.core.RepresentationPrinter = RepresentationPrinter  # type: ignore[attr-defined]  # its own


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Servers and commands of the tests neither see nor change what this account keeps about its own servers."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, one per test process."""
    with running_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[DockerEngine]:
    """A real Docker engine with an image for agents, one per test process."""
    with running_docker_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def xfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk where files share blocks, and with quotas where the kernel has them; one per test process."""
    with xfs_disk(tmp_path_factory.mktemp("disks") / "xfs") as disk:
        yield disk


@pytest.fixture
def s3_connection(s3_server: S3Server) -> S3Connection:
    """A place in its bucket that no other test uses."""
    return s3_server.connection(prefix=f"test-{uuid4().hex}")


@pytest.fixture(scope="session")
def embedded_database_server() -> Iterator[DatabaseAddress]:
    """The embedded PostgreSQL, with a migrated template to copy."""
    with embedded_server() as server:
        asyncio.run(_make_template(server))
        yield server


@pytest.fixture(scope="session")
def external_database_server() -> Iterator[DatabaseAddress]:
    """A PostgreSQL of the system's own, likewise."""
    with external_server() as server:
        asyncio.run(_make_template(server))
        yield server


@pytest.fixture(params=["embedded", "external"])
def database_server(request: pytest.FixtureRequest) -> DatabaseAddress:
    """Both, one after the other: what uses the database must work with either."""
    server = request.getfixturevalue(f"{request.param}_database_server")
    assert isinstance(server, DatabaseAddress)
    return server


async def _make_template(server: DatabaseAddress) -> None:
    await run_on_server(server, f"CREATE DATABASE {_TEMPLATE}")
    database = await Database.connect(named(server, _TEMPLATE))
    try:
        await migrate(database)
    finally:
        await database.close()


@pytest.fixture
async def database(database_server: DatabaseAddress) -> AsyncIterator[Database]:
    """A migrated database of the test's own, embedded and external in turn."""
    async with connected_copy(database_server) as database:
        yield database


@pytest.fixture
async def embedded_database(embedded_database_server: DatabaseAddress) -> AsyncIterator[Database]:
    """A migrated embedded database of the test's own, for what does not depend on the kind of server."""
    async with connected_copy(embedded_database_server) as database:
        yield database


@asynccontextmanager
async def connected_copy(server: DatabaseAddress) -> AsyncIterator[Database]:
    async with database_copy(server, _TEMPLATE) as address:
        database = await Database.connect(address)
        try:
            yield database
        finally:
            await database.close()
