"""Which calls of `contextbase mcp` are the bridge, and what it is told."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from contextbase.errors import InvalidInput
from contextbase.interfaces.mcp.client_settings import CLIENTS, settings_for_client
from contextbase.interfaces.mcp.start import bridge_options


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--project", "p", "--agent=a"], {"project": "p", "agent": "a"}),
        (["-p", "p", "--data", "d", "--server", "s"], {"project": "p", "data": "d", "server": "s"}),
        (["--help"], None),
        (["--list-tools", "--json"], None),
        (["--project"], None),
        (["--print-config", "codex"], None),
    ],
)
def test_only_its_own_options_make_it_the_bridge(arguments: list[str], options: dict[str, str] | None) -> None:
    assert bridge_options(arguments) == options


OPTIONS = ("--project", "my notes", "--server", "work")


def started_by(client: str, program: Path | None) -> list[str]:
    """The command that a client reads in its settings. Cursor and Claude Desktop take plain JSON: no comments."""
    settings = settings_for_client(client, OPTIONS, program=program)
    assert "cb_" not in settings.text
    if settings.file is None:
        return shlex.split(settings.text.partition(" -- ")[2])
    if settings.file.endswith(".toml"):
        server = tomllib.loads(settings.text)["mcp_servers"]["contextbase"]
        return [server["command"], *server["args"]]
    whole = json.loads(settings.text)
    if client == "opencode":
        assert whole["mcp"]["contextbase"]["type"] == "local"
        command: list[str] = whole["mcp"]["contextbase"]["command"]
        return command
    server = whole["servers" if client == "vscode" else "mcpServers"]["contextbase"]
    assert server.get("type", "stdio") == "stdio"
    return [server["command"], *server["args"]]


@pytest.mark.parametrize("client", CLIENTS)
def test_settings_start_the_bridge_with_all_its_options(client: str) -> None:
    command = started_by(client, None)
    assert Path(command[0]).name == "contextbase"
    assert command[1] == "mcp"
    assert bridge_options(command[2:]) == {"project": "my notes", "server": "work"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_program_that_no_shell_finds_is_named_by_its_path(client: str, tmp_path: Path) -> None:
    program = tmp_path / "not on the path" / "contextbase"
    program.parent.mkdir()
    program.touch()
    assert started_by(client, program)[0] == str(program)


@pytest.mark.parametrize("client", ["claude-code", "codex", "opencode"])
def test_a_program_on_the_path_is_named_plainly(client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "contextbase"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert started_by(client, program)[0] == "contextbase"


def test_codex_is_told_every_variable_that_chooses_a_server() -> None:
    passed = tomllib.loads(settings_for_client("codex").text)["mcp_servers"]["contextbase"]["env_vars"]
    chosen_by = {"URL", "TOKEN", "SERVER", "DATA", "PROJECT"}
    assert {f"CONTEXTBASE_{name}" for name in chosen_by} <= set(passed)


def test_an_unknown_client_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="claude-code"):
        settings_for_client("emacs")
