"""Codex's settings, which are written for it: those of the workspace are not trusted."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from contextbase.agents.mcp_servers import OWN_SERVER
from contextbase.agents.model import AgentPlace, AgentTurn

__all__ = ["GATEWAY_KEY", "codex_configuration", "write_configuration"]

GATEWAY_KEY: Final = "CODEX_GATEWAY_KEY"
"""The variable with what it sends as its key."""


def codex_configuration(turn: AgentTurn, place: AgentPlace) -> str:
    """The text of its file. Strings of JSON are strings of TOML."""
    provider = {
        "name": "contextbase",
        "base_url": f"{place.model_url}/v1",
        "wire_api": "responses",
        "env_key": GATEWAY_KEY,
        "requires_openai_auth": False,
        "supports_websockets": False,
        "stream_idle_timeout_ms": 900_000,  # longer than a connection waits for a server
    }
    tables: dict[str, Mapping[str, Any]] = {
        "tools.update_plan": {"enabled": True},
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "features": {
            "apps": False,
            "plugins": False,
            "hooks": False,
            "shell_snapshot": False,  # a login shell beside the turn; a program with children is not kept
            "enable_request_compression": False,
            "default_mode_request_user_input": True,
        },
        "skills": {"include_instructions": False},
        f"projects.{json.dumps(str(place.workspace))}": {"trust_level": "untrusted"},
        "model_providers.contextbase": provider,
    }
    for server in turn.servers:
        about: dict[str, Any] = {"tool_timeout_sec": 600}
        if server.name == OWN_SERVER or turn.profile != "ask":  # nobody can be asked about the others
            about["default_tools_approval_mode"] = "approve"
        if server.command:
            [command, *arguments] = server.command
            about |= {"command": command, "args": arguments}
        else:
            about["url"] = f"{place.mcp_url}{server.path}"
        tables[f"mcp_servers.{server.name}"] = about
        if server.environment:
            tables[f"mcp_servers.{server.name}.env"] = dict(server.environment)
    top = {
        "model": turn.model,
        "model_provider": "contextbase",
        "check_for_update_on_startup": False,
        "suppress_unstable_features_warning": True,
        "project_doc_max_bytes": 0,  # the place's instructions are given to it by us
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in top.items()]
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def write_configuration(folder: Path, place: AgentPlace, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / "config.toml.new"
    draft.unlink(missing_ok=True)
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / "config.toml")
    (place.home / ".codex-databases").mkdir(parents=True, exist_ok=True)
