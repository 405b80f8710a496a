"""Whether a text is TOML: what nearly all files are made of is told by one pattern, the rest by tomllib."""

import re
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from contextbase.merge.budget import Budget, BudgetSpent

__all__ = ["is_valid_toml"]

_MAX_CHECKED: Final = 4 << 20  # tomllib reads about 3 MB a second, and cannot be stopped
_ENDLESS_KEY: Final = re.compile(r"(?<![\w.-])(?:[\w-]++\.){500}")  # tomllib's time grows with its square

_NAME: Final = r"[A-Za-z0-9_-]++"
_NAMES: Final = rf"{_NAME}(?:\.{_NAME})*+"
_COMMENT: Final = r"\#[^\x00-\x08\x0a-\x1f\x7f]*+"
_SCALAR: Final = r""""[^"\\\x00-\x1f\x7f]*+"(?!")|'[^'\x00-\x1f\x7f]*+'(?!')|true|false|-?(?:0|[1-9][0-9]{0,17}+)"""
_SPACE: Final = rf"(?:[ \n]|{_COMMENT}\n)*+"
_ARRAY: Final = rf"\[{_SPACE}(?:(?:{_SCALAR}){_SPACE}(?:,{_SPACE}(?:{_SCALAR}){_SPACE})*+(?:,{_SPACE})?)?\]"
_PAIR: Final = rf"{_NAME} *= *(?:{_SCALAR}|{_ARRAY})"
_TABLE: Final = rf"\{{ *{_PAIR} *(?:, *{_PAIR} *)*+\}}"
_TEXT: Final = r'"""[^"\\\x00-\x08\x0b-\x1f\x7f]*+"""(?!")'
_VALUE: Final = rf"{_SCALAR}|{_ARRAY}|({_TABLE})|{_TEXT}"
# A condition, as Cargo has it, can only be written in quotes, and other names are plain here: each has one spelling.
_HEADER: Final = rf"(?:{_NAME}|'cfg\([^'\x00-\x1f\x7f]*+')(?:\.(?:{_NAME}|'cfg\([^'\x00-\x1f\x7f]*+'))*+"
_LINE: Final = rf" *+(?:\[\[({_HEADER})\]\]|\[({_HEADER})\]|({_NAMES}) *= *(?:{_VALUE}))? *(?:{_COMMENT})?\n"
_PLAIN: Final = re.compile(rf"(?:{_LINE})*+")
_PLAIN_LINE: Final = re.compile(_LINE)
_KEY_IN_TABLE: Final = re.compile(rf"[{{,] *({_NAME}) *=")


def is_valid_toml(text: str, budget: Budget) -> bool:
    """Well formed, and no key or table stands twice."""
    budget.tick(len(text) // 4)
    if _PLAIN.fullmatch(text) and _has_each_name_once(text):
        return True
    if len(text) > _MAX_CHECKED:
        raise BudgetSpent
    if _ENDLESS_KEY.search(text):
        return False
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _has_each_name_once(text: str) -> bool:
    """Whether no two names of a plain text can be in each other's way; of those that might, tomllib knows more."""
    tables: list[str] = []
    arrays: set[str] = set()
    values: list[str] = []
    above_tables: set[str] = set()  # `.a` and `.a.b` of a table `[a.b]`
    above_values: set[str] = set()  # `.a` and `.a.b` of a key `a.b.c`
    table = ""
    for array, header, key, inline in _PLAIN_LINE.findall(text):
        if array:
            arrays.add(f".{array}")
            table = f".{array}#{len(tables)}"  # each is a table of its own
            tables.append(table)
            above_tables.update(_with_those_above(f".{array}".rpartition(".")[0]))
        elif header:
            table = f".{header}"
            tables.append(table)
            above_tables.update(_with_those_above(table))
        elif key:
            values.append(f"{table}.{key}")
            if "." in key:
                above_values.update(f"{table}.{name}" for name in _with_those_above(key.rpartition(".")[0]))
            if inline and not _is_unique(_KEY_IN_TABLE.findall(inline)):
                return False
    kinds = (above_tables - {""}, above_values, arrays, values)
    return _is_unique(tables) and _is_unique([name for kind in kinds for name in kind])


def _with_those_above(name: str) -> Iterator[str]:
    return accumulate(name.split("."), "{}.{}".format)


def _is_unique(names: list[str]) -> bool:
    return len(set(names)) == len(names)
