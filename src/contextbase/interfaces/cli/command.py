"""The shape of commands that ask a server: arguments, a call, and what to show of the answer."""

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, get_args

import typer
from rich.text import Text

from contextbase.interfaces.cli.connection import NEEDED, Data, Project, connect, named
from contextbase.interfaces.cli.output import (
    EXIT_FAILED,
    Json,
    errors_shown,
    print_json,
    print_line,
    print_long,
    print_table,
)

if TYPE_CHECKING:
    from contextbase.sdk import Client

__all__ = ["CommandResult", "TableRows", "command"]

P = ParamSpec("P")

_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRows:
    """A table, or the sentence `empty`. Columns in `whole` are never wrapped."""

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    empty: str
    whole: Collection[str] = ()

    def print(self) -> None:
        print_table(self.columns, self.rows, empty=self.empty, whole=self.whole)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command found. With --json the `answer` is printed (an iterator as a list), else the `text`: a sentence, a
    table, lines, or what a function prints. `is_failure` makes the exit code 1."""

    answer: object
    text: str | TableRows | Iterable[Text] | Callable[[], None]
    is_failure: bool = False


def command(function: "Callable[Concatenate[Client, P], CommandResult | None]") -> Callable[..., None]:
    """A command for Typer: it gets a client, and the options --data and --json. A parameter of the type `NamedProject`
    is the option --project, with the command refused if no project is known. A parameter `as_json` says whether --json
    was given, for commands that ask before they act. A command that has written its output itself returns None."""
    _, *declared = inspect.signature(function).parameters.values()
    parameters = [parameter for parameter in declared if parameter.name != "as_json"]
    needed = [parameter.name for parameter in parameters if NEEDED in get_args(parameter.annotation)]

    @functools.wraps(function)
    def run(*_: P.args, **given: P.kwargs) -> None:
        data, as_json = given.pop("data"), given.pop("as_json")
        with connect(data) as client:  # type: ignore[arg-type]  # as its annotation says
            if len(parameters) < len(declared):
                given["as_json"] = as_json
            for name in needed:
                given[name] = named(given[name])  # type: ignore[arg-type]
            shown = function(client, **given)  # type: ignore[call-arg]
            if shown is not None:
                _show(shown, as_json=bool(as_json))
        if shown is not None and shown.is_failure:
            raise typer.Exit(EXIT_FAILED)

    own = [
        parameter.replace(annotation=Project, default=None) if parameter.name in needed else parameter
        for parameter in parameters
    ]
    added = [
        inspect.Parameter("data", _KEYWORD, default=None, annotation=Data),
        inspect.Parameter("as_json", _KEYWORD, default=False, annotation=Json),
    ]
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return errors_shown(run)


def _show(shown: CommandResult, *, as_json: bool) -> None:
    text = shown.text
    if as_json:
        print_json(list(shown.answer) if isinstance(shown.answer, Iterator) else shown.answer)
    elif isinstance(text, str):
        print_line(text)
    elif isinstance(text, TableRows):
        text.print()
    elif callable(text):
        text()
    else:
        print_long(text)
