"""The shape of commands that ask a server: what they take, what they print, and how they end."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from contextbase.errors import Conflict
from contextbase.interfaces.cli import command as module
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.sdk import Client

CLIENT = object()


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connect(_: object) -> Iterator[object]:
        yield CLIENT

    monkeypatch.setattr(module, "connect", connect)
    monkeypatch.delenv("CONTEXTBASE_PROJECT", raising=False)


def ran(result: CommandResult | Exception, *arguments: str) -> tuple[int, str, str]:
    app = typer.Typer()

    @app.command()
    @command
    def act(
        client: Client, name: str, often: Annotated[int, typer.Option("--often")] = 1, *, project: NamedProject
    ) -> CommandResult:
        """Does something."""
        assert client is CLIENT
        assert (name, often, project) == ("a", 2, "p")
        if isinstance(result, Exception):
            raise result
        return result

    done = CliRunner().invoke(app, ["a", "--often", "2", *arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Done.", "Done.\n"),
        (TableRows(columns=("A",), rows=[(1,)], empty="None."), "A\n1\n"),
        (TableRows(columns=("A",), rows=[], empty="None."), "None.\n"),
        ([Text("one"), Text("two")], "one\ntwo\n"),
        (lambda: typer.echo("three"), "three\n"),
    ],
)
def test_people_get_the_text_and_programs_the_answer(text: object, printed: str) -> None:
    result = CommandResult({"seq": 1}, text)  # type: ignore[arg-type]
    code, output, _ = ran(result, "--project", "p")
    assert (code, [line.rstrip() for line in output.splitlines()]) == (
        0,
        [line.rstrip() for line in printed.splitlines()],
    )
    code, output, _ = ran(result, "--project", "p", "--json")
    assert (code, json.loads(output)) == (0, {"seq": 1})


def test_a_failure_is_shown_and_is_the_exit_code() -> None:
    assert ran(CommandResult([], "Not all.", is_failure=True), "-p", "p")[:2] == (1, "Not all.\n")


def test_an_error_is_reported_with_its_code() -> None:
    code, output, error = ran(Conflict("Taken."), "-p", "p", "--json")
    assert (code, output, json.loads(error)["error"]["code"]) == (1, "", "conflict")


def test_a_command_about_a_project_is_refused_without_one() -> None:
    code, output, error = ran(CommandResult({}, "Done."), "--json")
    assert (code, output, json.loads(error)["error"]["code"]) == (2, "", "invalid_input")
