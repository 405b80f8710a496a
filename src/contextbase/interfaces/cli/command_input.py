"""The standard input of an agent's command. Ours is passed on only when asked for: it is sent as a whole, so a pipe
that stays open (as in cron, build servers and shell loops) would be waited for forever."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from contextbase.errors import InvalidInput, TooLarge

__all__ = ["Stdin", "input_of"]

_MOST: Final = 8 << 20  # what a server takes in one request, unless it is told otherwise

Stdin = Annotated[
    str | None,
    typer.Option("--stdin", metavar="FILE", help="A file to use as its standard input; - for ours. Default: empty."),
]


def input_of(file: str) -> str:
    try:
        data = _read(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    if len(data) > _MOST:
        raise TooLarge(
            f"The standard input of a command can be {_MOST >> 20} MB at most. Put larger data into the project "
            "(contextbase put): the command finds it in its folder."
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            "The standard input of a command must be UTF-8 text. Put other data into the project (contextbase put): "
            "the command finds it in its folder."
        ) from None


def _read(file: str) -> bytes:
    if file != "-":
        with Path(file).open("rb") as opened:
            return opened.read(_MOST + 1)
    return b"" if sys.stdin is None else sys.stdin.buffer.read(_MOST + 1)  # None: it is closed
