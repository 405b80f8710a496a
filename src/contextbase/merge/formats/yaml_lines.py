"""YAML's block structure: which lines make an entry of a mapping or sequence, told by their indentation."""

import re
from functools import lru_cache
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured

__all__ = ["DASH", "KEY", "QUOTED", "end_of_entry", "entries", "indent_of", "is_margin"]

QUOTED: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'"""
KEY: Final = re.compile(
    rf"""({QUOTED}|(?![-?:](?:\s|$))[^\s#&*!|>'"%@`\[\]{{}},]"""
    r"""(?:[^\s:\#]++|[^\S \t\n]|[ \t]++(?![:\#\n])|:(?=\S)|(?<=\S)\#)*+)[ \t]*:(?=\s|$)"""
)
DASH: Final = re.compile(r"-(?:[ \t]+|(?=\n))")
_MARGIN: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")


def entries(text: str, indent: int, *, of_mapping: bool, budget: Budget) -> list[tuple[str, str]]:
    """The entries of a block whose keys or dashes stand at `indent`: the margin (blank lines and comments) above each,
    and its text with everything below it; last, without text, the margin at the end of the block."""
    found: list[tuple[str, str]] = []
    for margin, entry, rest in _entry_pattern(indent, of_mapping=of_mapping).findall(text):
        if entry:
            found.append((margin, entry))
        elif not is_margin(rest):
            raise Unstructured("its indentation is uneven")
        else:
            found.append((rest, ""))
    budget.tick(len(found))
    return found


def end_of_entry(text: str, start: int, indent: int) -> int:
    """Where an entry of a mapping ends whose key stands at `indent`, its first line ending at `start`."""
    below = _below_key(indent).match(text, start)
    return start if below is None else below.end()


def is_margin(text: str) -> bool:
    """Whether it is blank lines and comments only."""
    return _MARGIN.fullmatch(text) is not None


def indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


@lru_cache(maxsize=256)
def _entry_pattern(indent: int, *, of_mapping: bool) -> re.Pattern[str]:
    """The margin above an entry and its lines, or else the rest of the text."""
    first = rf"(?!{DASH.pattern})[^\s\#]" if of_mapping else r"[^\s\#]"
    lines = rf" {{{indent}}}{first}[^\n]*+\n{_lines_below(indent, of_mapping=of_mapping)}"
    return re.compile(rf"({_MARGIN.pattern}+)({lines})|([^\n]*\n(?:[^\n]*\n)*)")


@lru_cache(maxsize=256)
def _below_key(indent: int) -> re.Pattern[str]:
    return re.compile(_lines_below(indent, of_mapping=True))


def _lines_below(indent: int, *, of_mapping: bool) -> str:
    """The lines of an entry below its first, up to a margin.

    A block scalar's text is always indented deeper than its key, so it takes no part in this. A dash may stand right
    below its key, without indentation. A comment that is indented deeper than an entry belongs to it.
    """
    deeper = rf" {{{indent + 1}}} *+\S[^\n]*+\n"  # what nearly all lines are, told at once
    margin = rf"(?:[ \t]*\n|[ \t]{{0,{indent}}}\#[^\n]*\n)*+"
    other = rf"(?! {{0,{indent}}}\S)"
    if of_mapping:
        other = rf"(?:{other}| {{{indent}}}{DASH.pattern})"
    return rf"(?:{deeper}|{margin}{other}[^\n]*+\n)*+"
