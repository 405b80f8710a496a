"""Options of agent programs: by the names their people know, and nothing else."""

from typing import Any

import pytest

from contextbase.agents.options import OptionProblem, checked_options, profile_of
from contextbase.agents.registry import adapter_named


@pytest.mark.parametrize(
    ("provider", "given", "profile"),
    [
        ("claude-code", {"permissionMode": "plan"}, "plan"),
        ("claude-code", {"permissionMode": "default", "allowedTools": ["Read"], "maxTurns": 3}, "ask"),
        ("claude-code", {"permissionMode": "bypassPermissions"}, "default"),
        ("codex-cli", {"approvalMode": "on-request", "sandboxMode": "workspace-write"}, "ask"),
        ("codex-cli", {"approvalMode": "never"}, "default"),
        ("codex-cli", {"profile": "plan"}, "plan"),
        ("opencode", {"agent": "plan", "tools": {"question": False}}, "plan"),
        ("opencode", {"agent": "build", "mcp": False}, "default"),
        ("scripted", {}, "default"),
    ],
)
def test_a_program_takes_its_own_options_and_they_give_a_profile(
    provider: str, given: dict[str, Any], profile: str
) -> None:
    adapter = adapter_named(provider)
    assert adapter is not None
    assert checked_options(adapter.name, adapter.options, given) == given
    assert profile_of(adapter.options, given, "default") == profile


@pytest.mark.parametrize(
    ("provider", "given"),
    [
        ("claude", {"agent": "plan"}),  # another program's
        ("claude", {"permissionMode": "yolo"}),
        ("claude", {"allowedTools": ["--dangerous"]}),
        ("claude", {"allowedTools": "Read"}),
        ("claude", {"maxTurns": 0}),
        ("claude", {"maxTurns": True}),
        ("codex", {"sandboxMode": "read-only"}),
        ("codex", {"cwd": "/"}),
        ("opencode", {"tools": {"bash": "no"}}),
        ("opencode", {"mcp": 1}),
        ("scripted", {"anything": 1}),
    ],
)
def test_what_a_program_does_not_have_is_refused(provider: str, given: dict[str, Any]) -> None:
    adapter = adapter_named(provider)
    assert adapter is not None
    with pytest.raises(OptionProblem):
        checked_options(adapter.name, adapter.options, given)
