"""What commands print: tables and sentences for people, JSON with --json, errors with what to do next."""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from itertools import chain, islice
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
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
    "print_hanging",
    "print_json",
    "print_line",
    "print_long",
    "print_sentence",
    "print_table",
    "progress",
    "report",
    "subject",
    "told_if_interrupted",
    "visible",
]

P = ParamSpec("P")
R = TypeVar("R")

_REORDERING = "\u202a-\u202e\u2066-\u2069"  # text that follows is shown in another order than it has
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REORDERING}]")
_CONTROL_OR_BREAK = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{_REORDERING}]")

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141  # what a shell gives for a program that SIGPIPE ended
_GAP = 2
_LONGEST_WORD = 16
_NARROWEST = 4


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would exit with 1; `errors_shown` knows better."""
        raise BrokenPipeError


console = _Console()
error_console = _Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(_plain(value), indent=2, default=str) + "\n")
    sys.stdout.flush()  # `up` goes on running while a program reads this


def print_line(text: str) -> None:
    """One line as it is, however long: it may hold paths, and go into a pipe."""
    console.print(Text(on_one_line(text)), soft_wrap=True)


def print_hanging(head: Text, body: str, *, style: str = "") -> None:
    """A text beside a heading; on a terminal its further lines stand below its first one."""
    if not console.is_terminal:
        console.print(Text.assemble(head, (visible(body), style)), soft_wrap=True)
        return
    lines = Text(visible(body), style).wrap(console, max(20, console.width - head.cell_len))
    for number, line in enumerate(lines):
        console.print(Text.assemble(head if number == 0 else " " * head.cell_len, line), soft_wrap=True)


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


@contextmanager
def progress(what: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, if that is a terminal, for the time of a block; call what you get as work is done."""
    from rich import progress as bars  # slow to import, and few commands have one

    count = (bars.DownloadColumn(), bars.TransferSpeedColumn()) if in_bytes else (bars.MofNCompleteColumn(),)
    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), *count, bars.TimeRemainingColumn())
    with bars.Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as bar:
        task = bar.add_task(escape(on_one_line(what)), total=total)
        yield lambda done: bar.advance(task, done)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str, whole: Collection[str] = ()
) -> None:
    """A table, or the sentence `empty` when there are no rows. On a terminal it is as wide as that, and all columns
    wrap but those in `whole`, such as ids. In a pipe nothing wraps."""
    cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    if not cells:
        console.print(empty, soft_wrap=True, highlight=False)
        return
    columns_of_text = [[name, *column] for name, column in zip(columns, zip(*cells, strict=True), strict=True)]
    widths = [max(map(cell_len, column)) for column in columns_of_text]
    if console.is_terminal:
        wrapped = [index for index, name in enumerate(columns) if name not in whole]
        widths = _fitting(widths, columns_of_text, wrapped, console.width - _GAP * (len(columns) - 1))
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
    for name, width in zip(columns, widths, strict=True):
        table.add_column(name, width=width, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    if console.is_terminal:
        console.print(table)
    else:
        _Console(file=console.file, width=sum(widths) + _GAP * len(widths)).print(table)


def _fitting(widths: Sequence[int], texts: Sequence[Sequence[str]], wrapped: Sequence[int], room: int) -> list[int]:
    """The widths of columns for so much room: those that wrap give way, the widest first, and break words last."""
    fitting = list(widths)
    words = [max((cell_len(word) for text in column for word in text.split()), default=1) for column in texts]
    for least in (_LONGEST_WORD, _NARROWEST):
        while sum(fitting) > room:
            able = [index for index in wrapped if fitting[index] > min(words[index], least)]
            if not able:
                break
            fitting[max(able, key=lambda index: fitting[index])] -= 1
    return fitting


def errors_shown(command: Callable[P, R]) -> Callable[P, R]:
    """Turn our errors into a sentence on standard error (JSON with --json) and an exit code: 2 for bad input, 130 for
    Ctrl-C, 141 for a closed pipe."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        as_json = bool(kwargs.get("as_json"))
        try:
            try:
                return command(*args, **kwargs)
            finally:
                if sys.stdout is not None:  # it may be closed
                    sys.stdout.flush()
        except ContextbaseError as error:
            _fail(error, as_json=as_json)
        except ValueError as error:  # of which pydantic's are a kind
            from pydantic import ValidationError  # slow to import, and commands without wire models do without

            if not isinstance(error, ValidationError):
                raise
            problem = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in problem["loc"])
            _fail(InvalidInput(f"{where}: {problem['msg']}"), as_json=as_json)
        except KeyboardInterrupt as interrupt:
            _report("interrupted", f"Interrupted. {interrupt}".rstrip(), as_json=as_json)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            _give_up_output()
            raise typer.Exit(EXIT_CLOSED_PIPE) from None

    return wrapper


@contextmanager
def told_if_interrupted(sentence: Callable[[], str]) -> Iterator[None]:
    """What Ctrl-C leaves behind when it stops the block: said beside "Interrupted."."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(f"{interrupt} {sentence()}".strip()) from None


def _give_up_output() -> None:
    """Nobody reads it any more: what is still buffered goes nowhere, without another error at the exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def report(error: ContextbaseError, *, as_json: bool) -> None:
    """Say on standard error what went wrong, with its code."""
    _report(error.code, error.message, error.details, as_json=as_json)


def _report(code: str, message: str, details: dict[str, object] | None = None, *, as_json: bool) -> None:
    if as_json:
        body = {"error": {"code": code, "message": message, "details": details or {}}}
        sys.stderr.write(json.dumps(body, default=str) + "\n")
    elif code == "interrupted":
        print_sentence(Text(visible(message)))
    else:
        print_sentence(Text.assemble(("error: ", "bold red"), visible(message), (f" [{code}]", "dim")))


def print_sentence(text: Text) -> None:
    """On standard error; wrapped between words on a terminal, unless that would break a long path."""
    is_broken = any(cell_len(word) > error_console.width for word in text.plain.split())
    error_console.print(text, soft_wrap=is_broken or not error_console.is_terminal)


def _fail(error: ContextbaseError, *, as_json: bool) -> NoReturn:
    report(error, as_json=as_json)
    raise typer.Exit(EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED)


def _plain(value: object) -> Any:
    if (dump := getattr(value, "model_dump", None)) is not None:  # a wire model
        return dump(mode="json", by_alias=True)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
