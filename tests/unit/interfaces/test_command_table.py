"""The table of commands, which stands for them until one is called."""

from importlib import import_module

import pytest
from typer.main import get_command

from contextbase.interfaces.cli.command_table import COMMANDS, Entry
from contextbase.interfaces.cli.main import app


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_of_the_table_is_there_and_says_in_a_line_what_it_does(entry: Entry) -> None:
    assert entry.help.endswith(".")
    assert entry.panel
    assert getattr(import_module(entry.module), entry.attribute)


def test_every_command_that_talks_to_a_server_takes_the_servers_name() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for entry in COMMANDS:
        command = commands[entry.name].load()
        for leaf in getattr(command, "commands", {"": command}).values():
            if not hasattr(leaf, "commands"):
                assert any("--server" in option.opts for option in leaf.params) == entry.asks_a_server, leaf.name
