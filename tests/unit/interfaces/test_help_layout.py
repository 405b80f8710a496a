import re

import pytest
from typer.testing import CliRunner

from contextbase.interfaces.cli.main import app


def shown(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return re.sub(r"\x1b\[[0-9;]*m", "", CliRunner().invoke(app, [*arguments, "--help"]).output)


@pytest.mark.parametrize("command", [(), ("ls",), ("token", "create"), ("policy", "group", "add")])
def test_a_switch_is_listed_without_a_type(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(*command, monkeypatch=monkeypatch)
    assert "--help" in text
    assert "<bool>" not in text


def test_an_option_with_a_value_names_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown("audit", monkeypatch=monkeypatch)
    assert re.search(r"--path +TEXT ", text)
    assert re.search(r"--since +TIME ", text)
    assert re.search(r"--by +PRINCIPAL ", text)


def test_a_paragraph_of_help_is_wrapped_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    paragraph = shown("import", monkeypatch=monkeypatch).partition("New files that")[2].partition("╭")[0]
    lines = [line.strip() for line in paragraph.strip().splitlines()]
    assert all(len(line) > 50 for line in lines[:-1]), lines
