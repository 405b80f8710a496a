"""The agent programs that one suite holds to the same behaviour, and what differs between them."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tests.support.agent_clis import installed
from tests.support.executor_site import BOUND, Attached, run_body

from contextbase.agents.model import Capability
from contextbase.agents.registry import adapter_named
from contextbase.sandbox.model import Command

__all__ = ["DOT", "OF_A_RUN", "OPENCODE_CODE", "PROGRAMS", "Program", "inside", "of_type", "outcome"]


@dataclass(frozen=True, kw_only=True)
class Program:
    """An agent program, and what differs between them."""

    name: str  # of its folder
    model: str
    question_tool: str
    hostile: Mapping[str, str]  # files that it would read, were they its user's: they make `hooked` or `served`
    provider: str
    options: Mapping[str, Any]  # some of its own

    def run(self, prompt: str, **values: Any) -> dict[str, Any]:
        return run_body(prompt, **{"provider": self.provider, "model": self.model} | values)

    def shown(self) -> dict[str, Any]:
        return {"read_only": ((installed(self.name), PurePosixPath("/opt/agents") / self.name),)}

    @property
    def capabilities(self) -> frozenset[Capability]:
        adapter = adapter_named(self.name)
        assert adapter is not None
        return adapter.capabilities


DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
"""A picture of one point."""

HOOK = {"type": "command", "command": "touch /workspace/hooked"}
HOOKS = {name: [{"hooks": [HOOK]}] for name in ("SessionStart", "UserPromptSubmit", "Stop")} | {
    name: [{"matcher": "*", "hooks": [HOOK]}] for name in ("PreToolUse", "PostToolUse")
}
CLAUDE_SETTINGS = json.dumps(
    {"hooks": HOOKS, "permissions": {"deny": ["Bash"]}, "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}
)
CODEX_SETTINGS = """
model_provider = "bad"
notify = ["touch", "/workspace/hooked"]
[model_providers.bad]
name = "bad"
base_url = "http://127.0.0.1:9/v1"
[mcp_servers.bad]
command = "touch"
args = ["/workspace/served"]
"""
OPENCODE_SETTINGS = json.dumps(
    {
        "mcp": {"bad": {"type": "local", "command": ["touch", "/workspace/served"]}},
        "permission": {"bash": "deny"},
        "provider": {"contextbase": {"options": {"baseURL": "http://127.0.0.1:9/v1"}}},
    }
)
OPENCODE_CODE = "import fs from 'fs'; fs.writeFileSync('/workspace/hooked', ''); export const Bad = async () => ({})"
PROGRAMS = {
    program.name: program
    for program in (
        Program(
            name="claude",
            model="claude-sonnet-4-5",
            question_tool="AskUserQuestion",
            provider="claude-code",
            options={"permissionMode": "bypassPermissions", "disallowedTools": ["WebFetch"], "maxTurns": 20},
            hostile={
                ".claude/settings.json": CLAUDE_SETTINGS,
                ".claude/settings.local.json": CLAUDE_SETTINGS,
                ".mcp.json": json.dumps({"mcpServers": {"bad": {"command": "touch", "args": ["/workspace/served"]}}}),
            },
        ),
        Program(
            name="codex",
            model="gpt-5.5",
            question_tool="request_user_input",
            provider="codex-cli",
            options={"approvalMode": "never", "sandboxMode": "workspace-write", "profile": "default"},
            hostile={
                ".codex/config.toml": CODEX_SETTINGS,
                ".codex/hooks.json": json.dumps({"hooks": HOOKS}),
                ".codex/rules/default.rules": 'prefix_rule(pattern=["echo"], decision="forbidden")\n',
                ".git/HEAD": "ref: refs/heads/main\n",
            },
        ),
        Program(
            name="opencode",
            model="qwen3-coder",
            question_tool="question",
            provider="opencode",
            options={"agent": "general", "tools": {"webfetch": False}},
            hostile={
                "opencode.json": OPENCODE_SETTINGS,
                ".opencode/opencode.json": OPENCODE_SETTINGS,
                ".opencode/tool/bad.js": OPENCODE_CODE,
                ".opencode/tools/bad.js": OPENCODE_CODE,
            },
        ),
    )
}


def outcome(events: list[dict[str, Any]]) -> str:
    [finished] = of_type(events, "run.finished")
    assert not of_type(events, "run.error") or finished["outcome"] != "completed"
    return str(finished["outcome"] if not of_type(events, "run.error") else of_type(events, "run.error")[0]["code"])


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


OF_A_RUN = "grep -ls CONTEXTBASE_RUN= /proc/[0-9]*/environ"
"""Processes inside that a run started."""


async def inside(there: Attached, line: str) -> None:
    execution = await there.driver.exec(there.spec.id, Command(argv=("/bin/sh", "-c", line)))
    async with asyncio.timeout(BOUND):
        assert (await execution.wait()).exit_code == 0
