"""Each agent program, in the sandboxes that a test is for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agent_program_cases import PROGRAMS, Program
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Site


@pytest.fixture(params=["bubblewrap", "docker-folder"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """For what depends on processes, files or connections: in each kind of sandbox."""
    implementation = IMPLEMENTATIONS[request.param]
    given = None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)
    async with implementation.site(tmp_path, given) as site:
        yield site


@pytest.fixture
async def one_site(tmp_path: Path) -> AsyncIterator[Site]:
    """For what the program and its adapter say to each other, which is the same in all sandboxes."""
    async with IMPLEMENTATIONS["bubblewrap"].site(tmp_path, None) as site:
        yield site


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]
