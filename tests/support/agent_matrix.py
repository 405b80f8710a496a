"""Which agent programs a test meets in which sandboxes."""

import os
from typing import Final

import pytest
from tests.support.agent_program_cases import PROGRAMS

__all__ = ["in_sandboxes"]

_IS_WHOLE: Final = os.environ.get("CONTEXTBASE_TEST_AGENTS") == "all"
_SLOW: Final = frozenset({"opencode"})
"""A start takes five seconds of a processor; the others need one."""


def in_sandboxes(place: str, *, all_in_docker: bool = False) -> pytest.MarkDecorator:
    """Each program in bubblewrap and in Docker; the slow one in Docker if `all_in_docker` says so, or
    CONTEXTBASE_TEST_AGENTS=all does for all tests. `place`: the fixture that is given the kind of sandboxes."""
    in_docker = [name for name in PROGRAMS if all_in_docker or _IS_WHOLE or name not in _SLOW]
    met = [*(("bubblewrap", name) for name in PROGRAMS), *(("docker", name) for name in in_docker)]
    return pytest.mark.parametrize((place, "program"), met, ids=[*map("-".join, met)], indirect=True)
