"""What people wish for a message, by the names of the program that answers it."""

from dataclasses import replace

import pytest

from contextbase.errors import InvalidInput
from contextbase.sessions.agent_catalog import AgentCatalog
from contextbase.sessions.agent_programs import AgentPrograms
from contextbase.sessions.model import RunWishes


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (RunWishes(), RunWishes(provider="opencode")),
        (RunWishes(profile="plan"), RunWishes(provider="opencode", profile="plan")),
        (RunWishes(profile="general"), RunWishes(provider="opencode", profile="default", options={"agent": "general"})),
        (RunWishes(profile="build", provider="codex"), RunWishes(provider="codex-cli", profile="default")),
        (
            RunWishes(profile="acceptEdits", provider="claude-code"),
            RunWishes(provider="claude-code", profile="default", options={"permissionMode": "acceptEdits"}),
        ),
    ],
)
def test_a_profile_is_ours_or_a_choice_of_the_programs_options(asked: RunWishes, got: RunWishes) -> None:
    assert AgentCatalog(programs=AgentPrograms()).wished("opencode", asked) == got


@pytest.mark.parametrize("asked", [RunWishes(profile="general"), RunWishes(options={"agent": "build"})])
def test_what_another_program_has_is_refused(asked: RunWishes) -> None:
    with pytest.raises(InvalidInput):
        AgentCatalog(programs=AgentPrograms()).wished("opencode", replace(asked, provider="claude"))
