"""Real agent programs, each with an environment made from nothing, a home of its own and a scripted model."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.require import unavailable
from tests.support.scripted_model import RecordedModel
from tests.support.server import PROGRAM, ServerProcess

__all__ = ["AGENT_CLIS", "AgentCli", "cache_folder", "installed"]

_ROOT = Path(__file__).parent.parent.parent
_SECONDS = 300
_INSTALL_SECONDS = 900


@dataclass(frozen=True, kw_only=True)
class AgentCli:
    name: str
    tool_name: Callable[[str], str]  # as its model has to call it
    reads_its_prompt: bool = False  # from its input: as an argument it would be quoted once more
    command: Callable[[Path, Path, ServerProcess, str, RecordedModel], tuple[list[str], dict[str, str]]]

    def run(self, home: Path, server: ServerProcess, token: str, model: RecordedModel) -> str:
        """Let it work until its script has ended; returns what it printed."""
        arguments, variables = self.command(installed(self.name), home, server, token, model)
        work = home / "work"
        work.mkdir()
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}
        done = subprocess.run(
            arguments,
            env=environment | variables,
            cwd=work,
            input=model.prompt if self.reads_its_prompt else "",
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def cache_folder() -> Path:
    return Path(os.environ.get("CONTEXTBASE_AGENT_CLIS") or Path.home() / ".cache" / "contextbase-agent-clis")


def installed(name: str) -> Path:
    """The folder of a program, installed now if it is not there yet."""
    cache = cache_folder()
    script = _ROOT / "scripts" / "agent-clis.sh"
    done = subprocess.run(
        ["sh", script, cache, name], capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
    )
    if done.returncode != 0:
        unavailable(f"{name} cannot be installed: {done.stderr[-500:]}. Try scripts/agent-clis.sh {cache} {name}")
    return cache / name


def _claude(
    folder: Path, home: Path, server: ServerProcess, token: str, model: RecordedModel
) -> tuple[list[str], dict[str, str]]:
    config = home / "mcp.json"
    stdio = {"command": PROGRAM, "args": ["mcp"], "env": {"CONTEXTBASE_URL": server.url, "CONTEXTBASE_TOKEN": token}}
    config.write_text(json.dumps({"mcpServers": {"contextbase": stdio}}))
    arguments = [
        str(folder / "claude_agent_sdk" / "_bundled" / "claude"),
        *("-p", model.prompt, "--model", "claude-sonnet-4-5", "--output-format", "json"),
        *("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", "mcp__contextbase"),
    ]
    variables = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return arguments, variables


def _codex(
    folder: Path, home: Path, server: ServerProcess, token: str, model: RecordedModel
) -> tuple[list[str], dict[str, str]]:
    settings = home / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(
        f"""
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[features]
apps = false
plugins = false
enable_request_compression = false
[model_providers.fake]
name = "fake"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
requires_openai_auth = false
supports_websockets = false
[mcp_servers.contextbase]
url = "{server.url}/mcp"
bearer_token_env_var = "CONTEXTBASE_TOKEN"
default_tools_approval_mode = "approve"
"""
    )
    arguments = [
        str(folder / "node_modules" / ".bin" / "codex"),
        *("exec", "--json", "--skip-git-repo-check", model.prompt),
    ]
    return arguments, {"FAKE_KEY": "dummy", "CONTEXTBASE_TOKEN": token}


def _opencode(
    folder: Path, home: Path, server: ServerProcess, token: str, model: RecordedModel
) -> tuple[list[str], dict[str, str]]:
    del home
    switches = "AUTOUPDATE MODELS_FETCH DEFAULT_PLUGINS LSP_DOWNLOAD SHARE CLAUDE_CODE PROJECT_CONFIG"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "dummy"},
        "models": {"fake-model": {"name": "fake-model", "tool_call": True}},
    }
    bridge = {
        "type": "local",
        "command": [PROGRAM, "mcp"],
        "environment": {"CONTEXTBASE_URL": server.url, "CONTEXTBASE_TOKEN": token},
    }
    config = {"provider": {"fake": provider}, "mcp": {"contextbase": bridge}, "snapshot": False}
    variables = {f"OPENCODE_DISABLE_{switch}": "1" for switch in switches.split()}
    arguments = [
        str(folder / "node_modules" / ".bin" / "opencode"),
        *("run", "--model", "fake/fake-model"),
    ]
    return arguments, variables | {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


AGENT_CLIS = (
    AgentCli(name="claude", tool_name=lambda tool: f"mcp__contextbase__{tool}", command=_claude),
    AgentCli(name="codex", tool_name=lambda tool: f"mcp__contextbase.{tool}", command=_codex),
    AgentCli(
        name="opencode",
        tool_name=lambda tool: f"contextbase_{tool}",
        command=_opencode,
        reads_its_prompt=True,
    ),
)
