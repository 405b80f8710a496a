"""Which calls of `contextbase mcp` are the bridge, and what it is told."""

import json

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


@pytest.mark.parametrize("client", CLIENTS)
def test_settings_start_the_bridge_for_the_project_and_hold_no_secret(client: str) -> None:
    text = settings_for_client(client, project="my notes")
    assert "mcp" in text
    assert "my notes" in text
    assert "cb_" not in text
    if text.startswith("//"):
        json.loads(text.partition("\n")[2])


def test_an_unknown_client_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="claude-code"):
        settings_for_client("emacs")
