"""What a command of an agent reads. Standard input is passed on only when asked for: it is sent as a whole, so a pipe
that stays open, as cron, build servers and loops of a shell have it, would be waited for and never end."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from contextbase.errors import InvalidInput, TooLarge

__all__ = ["Stdin", "input_of"]

_MOST: Final = 8 << 20  # what a server takes in one request, unless it is told otherwise

Stdin = Annotated[
    str | None,
    typer.Option("--stdin", metavar="FILE", help="What it reads; - for standard input. Default: nothing."),
]


def input_of(file: str) -> str:
    try:
        data = _read(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    if len(data) > _MOST:
        raise TooLarge(
            f"What a command reads has {_MOST >> 20} MB at the most. Put what is longer into the project "
            "(contextbase put): the command finds it in its folder."
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            "What a command reads must be text in UTF-8. Put other contents into the project (contextbase put): the "
            "command finds them in its folder."
        ) from None


def _read(file: str) -> bytes:
    if file != "-":
        with Path(file).open("rb") as opened:
            return opened.read(_MOST + 1)
    return b"" if sys.stdin is None else sys.stdin.buffer.read(_MOST + 1)  # None: it is closed
