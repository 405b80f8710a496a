"""What commands print: tables and sentences for people, JSON with --json, errors with what to do next."""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from itertools import chain, islice
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contextbase.errors import ContextbaseError, InvalidInput

__all__ = [
    "EXIT_USAGE",
    "Json",
    "console",
    "error_console",
    "errors_shown",
    "on_one_line",
    "places",
    "print_json",
    "print_line",
    "print_long",
    "print_table",
    "report",
    "subject",
    "visible",
]

P = ParamSpec("P")
R = TypeVar("R")

_REORDERING = "\u202a-\u202e\u2066-\u2069"  # text that follows is shown in another order than it has
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REORDERING}]")
_CONTROL_OR_BREAK = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{_REORDERING}]")

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
    console.print(Text(on_one_line(text)), soft_wrap=True)


def print_long(lines: Iterable[Text]) -> None:
    """Lines as they are; on a terminal that they do not fit, in a pager ($PAGER, or less)."""
    left = iter(lines)
    shown = list(islice(left, console.height - 1)) if console.is_terminal else []
    more = next(left, None) if console.is_terminal else None
    pager = shlex.split(os.environ.get("PAGER", "less -FRX")) if more is not None else []
    if more is None or not pager or shutil.which(pager[0]) is None:
        for line in chain(shown, [] if more is None else [more], left):
            console.print(line, soft_wrap=True)
        return
    with subprocess.Popen(pager, stdin=subprocess.PIPE, encoding="utf-8", errors="backslashreplace") as process:
        if process.stdin is None:
            raise RuntimeError("a pager without a standard input")
        page = Console(file=process.stdin, force_terminal=True, color_system="standard", width=console.width)
        try:
            for line in chain(shown, [more], left):
                page.print(line, soft_wrap=True)
        except BrokenPipeError:
            return  # the reader has seen enough


def places(number: int) -> str:
    """How many places of a file are contested."""
    return "1 place" if number == 1 else f"{number} places"


def visible(text: str) -> str:
    """What others wrote, as a terminal may show it: control characters are spelled out and command nothing."""
    return _CONTROL.sub(_spelled_out, text)


def on_one_line(text: str) -> str:
    """As `visible`, for what stands in a line of ours, such as a file's name: it cannot begin another line."""
    return _CONTROL_OR_BREAK.sub(_spelled_out, text)


def subject(message: str) -> str:
    """A commit's message within a line of ours: its first line, and whether there is more."""
    first, _, rest = message.strip().partition("\n")
    return on_one_line(first.rstrip() + " …" * bool(rest))


def _spelled_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table, or the sentence `empty` when there are no rows."""
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text("" if cell is None else visible(str(cell))) for cell in row))
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
        text = Text.assemble(("error: ", "bold red"), visible(error.message), (f" [{error.code}]", "dim"))
        error_console.print(text, soft_wrap=True)  # it may hold paths


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
