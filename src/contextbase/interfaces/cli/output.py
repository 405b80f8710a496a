"""What commands print: tables and sentences for people, JSON with --json, errors with what to do next."""

import functools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contextbase.errors import ContextbaseError, InvalidInput

__all__ = ["EXIT_USAGE", "Json", "console", "errors_shown", "print_json", "print_line", "print_table", "report"]

P = ParamSpec("P")
R = TypeVar("R")

EXIT_FAILED = 1
EXIT_USAGE = 2

console = Console()
error_console = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(_plain(value), indent=2, default=str) + "\n")
    sys.stdout.flush()  # `up` goes on running while a program reads this


def print_line(text: str) -> None:
    """One line as it is, however long: it may hold paths, and go into a pipe."""
    console.print(Text(text), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table, or the sentence `empty` when there are no rows."""
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console.print(table if table.row_count else empty)


def errors_shown(command: Callable[P, R]) -> Callable[P, R]:
    """Turn our errors into a sentence on standard error (JSON with --json) and an exit code: 2 for bad input."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        as_json = bool(kwargs.get("as_json"))
        try:
            return command(*args, **kwargs)
        except ContextbaseError as error:
            _fail(error, as_json=as_json)
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in problem["loc"])
            _fail(InvalidInput(f"{where}: {problem['msg']}"), as_json=as_json)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return wrapper


def report(error: ContextbaseError, *, as_json: bool) -> None:
    """Say on standard error what went wrong, with its code."""
    if as_json:
        body = {"error": {"code": error.code, "message": error.message, "details": error.details}}
        sys.stderr.write(json.dumps(body, default=str) + "\n")
    else:
        error_console.print(Text.assemble(("error: ", "bold red"), error.message, (f" [{error.code}]", "dim")))


def _fail(error: ContextbaseError, *, as_json: bool) -> NoReturn:
    report(error, as_json=as_json)
    raise typer.Exit(EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED)


def _plain(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
