"""Whether a text is TOML: what nearly all files are made of is told by one pattern, the rest by tomllib."""

import re
import tomllib
from itertools import accumulate
from typing import Final

from contextbase.merge.budget import Budget, BudgetSpent

__all__ = ["is_valid_toml"]

_MAX_CHECKED: Final = 4 << 20  # tomllib reads about 3 MB a second, and cannot be stopped
_ENDLESS_KEY: Final = re.compile(r"(?<![\w.-])(?:[\w-]++\.){500}")  # tomllib's time grows with its square

_NAME: Final = r"[A-Za-z0-9_-]++"
_NAMES: Final = rf"{_NAME}(?:\.{_NAME})*+"
_COMMENT: Final = r"\#[^\x00-\x08\x0a-\x1f\x7f]*+"
_SCALAR: Final = r""""[^"\\\x00-\x1f\x7f]*+"(?!")|'[^'\x00-\x1f\x7f]*+'(?!')|true|false|0|[1-9][0-9]{0,17}+"""
_SPACE: Final = rf"(?:[ \n]|{_COMMENT}\n)*+"
_ARRAY: Final = rf"\[{_SPACE}(?:(?:{_SCALAR}){_SPACE}(?:,{_SPACE}(?:{_SCALAR}){_SPACE})*+(?:,{_SPACE})?)?\]"
_PAIR: Final = rf"{_NAME} *= *(?:{_SCALAR}|{_ARRAY})"
_TABLE: Final = rf"\{{ *{_PAIR} *(?:, *{_PAIR} *)*+\}}"
_LINE: Final = rf" *+(?:\[({_NAMES})\]|({_NAMES})\ *=\ *(?:{_SCALAR}|{_ARRAY}|({_TABLE})))?\ *(?:{_COMMENT})?\n"
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
    values: set[str] = set()
    tables: set[str] = set()
    above_values: set[str] = set()  # `a` and `a.b` of a key `a.b.c`
    above_tables: set[str] = set()
    table = ""
    count = 0
    for header, key, inline in _PLAIN_LINE.findall(text):
        if header:
            table = f"{header}."
            tables.add(header)
            above_tables.update(accumulate(header.split("."), "{}.{}".format))
        elif key:
            values.add(table + key)
            if "." in key:
                above_values.update(table + name for name in accumulate(key.split(".")[:-1], "{}.{}".format))
            if inline:
                keys = _KEY_IN_TABLE.findall(inline)
                if len(set(keys)) < len(keys):
                    return False
        else:
            continue
        count += 1
    return (
        len(values) + len(tables) == count
        and above_tables.isdisjoint(values)
        and above_values.isdisjoint(values | above_tables)
    )
