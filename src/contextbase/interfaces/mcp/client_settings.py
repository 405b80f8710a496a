"""What to paste into each agent program so that it has the tools."""

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contextbase.errors import InvalidInput

__all__ = ["CLIENTS", "ClientSettings", "settings_for_client"]

_TOKEN: Final = "CONTEXTBASE_TOKEN"  # noqa: S105 - the name of a variable
_COMMAND: Final = "contextbase"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientSettings:
    """No secret is in them: the bridge finds the server and the token by itself."""

    file: str | None  # where the lines belong; None: they are a command to run
    text: str  # valid as the whole of the file: not all clients take comments


def settings_for_client(client: str, options: Sequence[str] = (), *, program: Path | None = None) -> ClientSettings:
    """For a client by name. `options`: those of `contextbase mcp`. `program`: the one that runs now."""
    make = CLIENTS.get(client)
    if make is None:
        raise InvalidInput(f"There are settings for {', '.join(CLIENTS)}, not for {client[:60]!r}.")
    return make(program, ["mcp", *options])


def _in_shell(program: Path | None) -> str:
    """For clients that are started from a shell. The plain name is enough if the shell finds this program by it: not in
    an environment that is not on its PATH."""
    found = shutil.which(_COMMAND)
    if program is None or program.name not in (_COMMAND, "cb") or (found and Path(found).samefile(program)):
        return _COMMAND
    return str(program.absolute())


def _in_windows(program: Path | None) -> str:
    """For clients that are not started by a shell, and know nothing of its PATH."""
    if program is not None and program.name in (_COMMAND, "cb") and program.exists():
        return str(program.absolute())
    return shutil.which(_COMMAND) or _COMMAND


def _claude_code(program: Path | None, arguments: list[str]) -> ClientSettings:
    command = shlex.join([_in_shell(program), *arguments])
    return ClientSettings(file=None, text=f"claude mcp add contextbase -- {command}")


def _codex(program: Path | None, arguments: list[str]) -> ClientSettings:
    # Codex hands its servers no variables but those that are named.
    text = (
        "[mcp_servers.contextbase]\n"
        f"command = {json.dumps(_in_shell(program))}\n"
        f"args = {json.dumps(arguments)}\n"
        f'env_vars = ["CONTEXTBASE_URL", "{_TOKEN}", "CONTEXTBASE_SERVER", "CONTEXTBASE_DATA", "CONTEXTBASE_PROJECT", '
        '"XDG_STATE_HOME"]\n'
        'default_tools_approval_mode = "approve"'
    )
    return ClientSettings(file="~/.codex/config.toml", text=text)


def _opencode(program: Path | None, arguments: list[str]) -> ClientSettings:
    command = [_in_shell(program), *arguments]
    return _json("opencode.json", {"mcp": {"contextbase": {"type": "local", "command": command}}})


def _cursor(program: Path | None, arguments: list[str]) -> ClientSettings:
    server = {"command": _in_windows(program), "args": arguments}
    return _json("~/.cursor/mcp.json", {"mcpServers": {"contextbase": server}})


def _claude_desktop(program: Path | None, arguments: list[str]) -> ClientSettings:
    server = {"command": _in_windows(program), "args": arguments}
    return _json("claude_desktop_config.json", {"mcpServers": {"contextbase": server}})


def _vscode(program: Path | None, arguments: list[str]) -> ClientSettings:
    server = {"type": "stdio", "command": _in_windows(program), "args": arguments}
    return _json(".vscode/mcp.json", {"servers": {"contextbase": server}})


def _json(file: str, settings: dict[str, Any]) -> ClientSettings:
    return ClientSettings(file=file, text=json.dumps(settings, indent=2))


CLIENTS: Final[dict[str, Callable[[Path | None, list[str]], ClientSettings]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "opencode": _opencode,
    "cursor": _cursor,
    "claude-desktop": _claude_desktop,
    "vscode": _vscode,
}
