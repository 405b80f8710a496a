"""YAML's block structure: which lines make an entry of a mapping or sequence, told by their indentation."""

import re
from functools import lru_cache
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured

__all__ = ["DASH", "KEY", "QUOTED", "entries", "indent_of", "is_margin"]

QUOTED: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'"""
KEY: Final = re.compile(
    rf"""({QUOTED}|(?![-?:](?:\s|$))[^\s#&*!|>'"%@`\[\]{{}},]"""
    r"""(?:[^\s:\#]|[^\S \t\n]|[ \t]++(?![:\#\n])|:(?=\S)|(?<=\S)\#)*+)[ \t]*:(?=\s|$)"""
)
DASH: Final = re.compile(r"-(?:[ \t]+|(?=\n))")
_MARGIN: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")


def entries(text: str, indent: int, *, of_mapping: bool, budget: Budget) -> list[tuple[str, str]]:
    """The entries of a block whose keys or dashes stand at `indent`: the margin (blank lines and comments) above each,
    and its text with everything below it; last, without text, the margin at the end of the block."""
    start, outside = _patterns(indent, of_mapping=of_mapping)
    after_newlines = "\n" + text
    if outside is not None and outside.search(after_newlines):
        raise Unstructured("its indentation is uneven")
    starts = [match.start() for match in start.finditer(after_newlines)]
    margin = text[: starts[0]] if starts else text
    if not is_margin(margin):
        raise Unstructured("its indentation is uneven")
    budget.tick(len(starts))
    found: list[tuple[str, str]] = []
    for at, until in zip(starts, [*starts[1:], len(text)], strict=True):
        last_line = text.rfind("\n", at, until - 1) + 1
        ends_in_margin = last_line > at and text[last_line:until].lstrip(" \t")[0] in "#\n"
        end = _without_margin(text, at, until, indent) if ends_in_margin else until
        found.append((margin, text[at:end]))
        margin = text[end:until]
    if margin:
        found.append((margin, ""))
    return found


def is_margin(text: str) -> bool:
    """Whether it is blank lines and comments only."""
    return _MARGIN.fullmatch(text) is not None


def indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


@lru_cache(maxsize=256)
def _patterns(indent: int, *, of_mapping: bool) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """What an entry starts with, and what may not stand in its block: anything indented less. Both begin with the
    newline before it: the search for that is many times faster than for `^`.

    A block scalar's text is always indented deeper than its key, so it takes no part in this. A dash may stand right
    below its key, without indentation.
    """
    first = r"(?!-(?:[ \t]|\n))[^\s#]" if of_mapping else r"[^\s#]"
    outside = re.compile(rf"\n {{0,{indent - 1}}}[^\s#]") if indent else None
    return re.compile(rf"\n {{{indent}}}{first}"), outside


def _without_margin(text: str, start: int, end: int, indent: int) -> int:
    """The end of an entry without the margin below it. A comment indented deeper than the entry belongs to it."""
    while (line := text.rfind("\n", start, end - 1) + 1) > start:
        content = text[line:end].lstrip(" \t")
        is_blank = content == "\n"
        if not (is_blank or (content[0] == "#" and end - line - len(content) <= indent)):
            break
        end = line
    return end
