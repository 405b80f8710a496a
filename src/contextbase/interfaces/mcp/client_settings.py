"""What to paste into each agent program so that it has the tools."""

import json
import shlex
import shutil
from collections.abc import Callable
from typing import Any, Final

from contextbase.errors import InvalidInput

__all__ = ["CLIENTS", "settings_for_client"]

_TOKEN: Final = "CONTEXTBASE_TOKEN"  # noqa: S105 - the name of a variable


def settings_for_client(client: str, *, project: str | None = None, agent: str | None = None) -> str:
    """Lines for a client by name. No secret is in them: the bridge finds the server and the token by itself."""
    make = CLIENTS.get(client)
    if make is None:
        raise InvalidInput(f"There are settings for {', '.join(CLIENTS)}, not for {client[:60]!r}.")
    arguments = ["mcp"]
    if project:
        arguments += ["--project", project]
    if agent:
        arguments += ["--agent", agent]
    return make(arguments)


def _claude_code(arguments: list[str]) -> str:
    return f"claude mcp add contextbase -- contextbase {shlex.join(arguments)}"


def _codex(arguments: list[str]) -> str:
    # Codex hands its servers no variables but those that are named.
    return (
        "# ~/.codex/config.toml\n"
        "[mcp_servers.contextbase]\n"
        'command = "contextbase"\n'
        f"args = {json.dumps(arguments)}\n"
        f'env_vars = ["CONTEXTBASE_URL", "{_TOKEN}", "CONTEXTBASE_DATA", "XDG_STATE_HOME"]\n'
        'default_tools_approval_mode = "approve"'
    )


def _opencode(arguments: list[str]) -> str:
    settings = {"mcp": {"contextbase": {"type": "local", "command": ["contextbase", *arguments]}}}
    return _json("opencode.json", settings)


def _servers(file: str, key: str) -> Callable[[list[str]], str]:
    def make(arguments: list[str]) -> str:
        # A program with windows is not started by a shell, and knows nothing of its PATH.
        command = shutil.which("contextbase") or "contextbase"
        return _json(file, {key: {"contextbase": {"command": command, "args": arguments}}})

    return make


def _json(file: str, settings: dict[str, Any]) -> str:
    return f"// {file}\n{json.dumps(settings, indent=2)}"


CLIENTS: Final[dict[str, Callable[[list[str]], str]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "opencode": _opencode,
    "cursor": _servers("~/.cursor/mcp.json", "mcpServers"),
    "claude-desktop": _servers("claude_desktop_config.json", "mcpServers"),
    "vscode": _servers(".vscode/mcp.json", "servers"),
}
