"""Each agent program, in the sandboxes that a test is for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agent_program_cases import PROGRAMS, Program
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Site

_IMPLEMENTATIONS = {"bubblewrap": "bubblewrap", "docker": "docker-folder"}


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """With sandboxes of the kind that the test names: see `in_sandboxes`."""
    implementation = IMPLEMENTATIONS[_IMPLEMENTATIONS[request.param]]
    given = None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)
    async with implementation.site(tmp_path, given) as site:
        yield site


@pytest.fixture
async def one_site(tmp_path: Path) -> AsyncIterator[Site]:
    """For what one adapter does, whatever is around it."""
    async with IMPLEMENTATIONS["bubblewrap"].site(tmp_path, None) as site:
        yield site


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]
