"""How --help looks: switches without a type, plain names for values, and paragraphs that wrap."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import typer
from typer.core import TyperGroup, TyperOption

__all__ = ["tidy_help", "tidy_option"]

_VALUES: Final[dict[object, str]] = {str: "TEXT", Path: "PATH", int: "N", float: "N", datetime: "TIME", UUID: "ID"}
_BREAK_IN_PARAGRAPH: Final = re.compile(r"(?<!\n)\n(?!\n)[ \t]*")


def tidy_help(command: Any) -> None:
    """Lay out the help of a command, or of every command in a group."""
    if command.help:
        command.help = _BREAK_IN_PARAGRAPH.sub(" ", command.help)
    for option in command.get_params(typer.Context(command)):
        tidy_option(option)
    if isinstance(command, TyperGroup):
        for child in command.commands.values():
            tidy_help(child)


def tidy_option(option: Any) -> None:
    """Name an option's value, unless it has a name already. A switch has no value."""
    if not isinstance(option, TyperOption) or option.metavar is not None:
        return
    if option.is_flag:
        option.metavar = ""
    else:
        kind = option.type_descriptor.annotation
        option.metavar = _VALUES.get(kind, "TEXT")
