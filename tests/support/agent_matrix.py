"""Which agent programs a test meets in which sandboxes."""

import os
from typing import Final, Literal

import pytest
from tests.support.agent_program_cases import PROGRAMS

__all__ = ["in_sandboxes"]

_IS_WHOLE: Final = os.environ.get("CONTEXTBASE_TEST_AGENTS") == "all"
_SLOW: Final = frozenset({"opencode"})
"""A start takes five seconds of a processor; the others need one."""


def in_sandboxes(place: str, *, slow_in: Literal["bubblewrap", "docker"] = "bubblewrap") -> pytest.MarkDecorator:
    """Each program in bubblewrap and in Docker, but the slow one in one of them; with CONTEXTBASE_TEST_AGENTS=all in
    both, too. `place`: the fixture that is given the kind of sandboxes."""
    met = [
        (sandbox, name)
        for sandbox in ("bubblewrap", "docker")
        for name in PROGRAMS
        if _IS_WHOLE or name not in _SLOW or sandbox == slow_in
    ]
    return pytest.mark.parametrize((place, "program"), met, ids=[*map("-".join, met)], indirect=True)
