"""YAML's block structure: which lines make an entry of a mapping or sequence, told by their indentation."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured

__all__ = ["DASH", "KEY", "QUOTED", "Entry", "entries", "indent_of", "is_margin"]

QUOTED: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'"""
KEY: Final = re.compile(
    rf"""({QUOTED}|(?![-?:](?:\s|$))[^\s#&*!|>'"%@`\[\]{{}},](?:[^\n:\#]|:(?=\S)|(?<=\S)\#)*?)[ \t]*:(?=\s|$)"""
)
DASH: Final = re.compile(r"-(?:[ \t]+|(?=\n))")
_BLOCK_SCALAR: Final = re.compile(r"(?:^|[:\-]|[&!]\S+)[ \t]+[|>][-+0-9]*(?:[ \t]+#.*)?$")


class Entry(NamedTuple):
    """One key or list item with everything below it, and the margin (blank lines and comments) above it."""

    margin: str
    lines: list[str]  # none: the margin at the end of the block


def entries(lines: list[str], indent: int, *, of_mapping: bool, budget: Budget) -> Iterator[Entry]:
    """The entries of a block whose keys or dashes stand at `indent`."""
    above = ""
    entry: list[str] = []
    margin: list[str] = []
    scalar_column: int | None = None  # inside a block scalar: what is indented deeper than this is its text
    for line in lines:
        budget.tick()
        column = indent_of(line)
        if not line.strip():
            margin.append(line)
            continue
        in_scalar = scalar_column is not None and column > scalar_column
        if not in_scalar:
            scalar_column = None
            if line[column] == "#":
                margin.append(line)
                continue
        is_dash_below_key = of_mapping and column == indent and DASH.match(line, column) is not None
        if in_scalar or column > indent or is_dash_below_key:
            if not entry:
                raise Unstructured("its indentation is uneven")
            entry += [*margin, line]
        elif column < indent:
            raise Unstructured("its indentation is uneven")
        else:
            kept = _kept_above(margin, indent) if entry else 0
            if entry:
                yield Entry(above, [*entry, *margin[:kept]])
            above, entry = "".join(margin[kept:]), [line]
        margin = []
        if not in_scalar and _opens_block_scalar(line):
            scalar_column = _innermost_column(line, column)
    kept = _kept_above(margin, indent)
    if entry:
        yield Entry(above, [*entry, *margin[:kept]])
    if margin[kept:]:
        yield Entry("".join(margin[kept:]), [])


def is_margin(lines: list[str]) -> bool:
    return all(not (stripped := line.strip()) or stripped[0] == "#" for line in lines)


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _kept_above(margin: list[str], indent: int) -> int:
    """How many lines of a margin belong to the entry above: up to the last comment indented deeper than the entry."""
    return max((n for n, line in enumerate(margin, 1) if line.strip() and indent_of(line) > indent), default=0)


def _opens_block_scalar(line: str) -> bool:
    return ("|" in line or ">" in line) and _BLOCK_SCALAR.search(line.rstrip()) is not None


def _innermost_column(line: str, column: int) -> int:
    """The column of the innermost key or dash of a line: the text of its block scalar is indented deeper."""
    while (dash := DASH.match(line, column)) is not None and KEY.match(line, dash.end()):
        column = dash.end()
    return column
