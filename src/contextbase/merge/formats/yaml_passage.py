"""Where YAML differs: most often below a single key, and then nothing else of it is read."""

import re
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from contextbase.merge.formats.yaml_lines import KEY, end_of_entry
from contextbase.merge.shared import Shared

__all__ = ["KeyedBlock", "find_block"]

_OUTERMOST: Final = re.compile(r"\n[^ \n]")
_INDENTATION: Final = re.compile(r"\n( *)(?=[^ \n])")
_NOTHING_ELSE: Final = re.compile(r"[ \t]*(?:(?<=[ \t])\#[^\n]*)?\n")


class KeyedBlock(NamedTuple):
    """The lines below a key, without the blank lines and comments that follow them."""

    start: int
    after: int  # how many characters follow it
    keys: tuple[str, ...]  # as written, from the outside in


def find_block(shared: Shared) -> KeyedBlock | None:
    """The innermost block of mappings within mappings that holds all that the sides differ in, if no side is without
    it. Only keys that have nothing beside them but a comment are gone into, so that no quotes or brackets are open."""
    texts = shared.texts
    if not texts or not all(texts):
        return None
    text = texts[0]
    start = text.rfind("\n", 0, shared.head) + 1
    after = len(text) - (text.find("\n", len(text) - shared.tail) + 1 or len(text))
    if not start or any(_OUTERMOST.search(side, start - 1, len(side) - after) for side in texts):
        return None
    differing = chain.from_iterable(_INDENTATION.findall(side, start - 1, len(side) - after) for side in texts)
    indent = len(min(differing, default=""))
    if not indent or any(map(_has_documents, texts)):
        return None
    above: list[tuple[int, int]] = []  # the lines that the differences stand below: where each starts, and its indent
    for match in reversed(list(_less_indented(indent).finditer("\n" + text, 0, start))):
        at, end = match.start(), match.end() - 1
        if end - at < indent:
            indent = end - at
            above.append((at, indent))
    return None if indent else _below(texts, above)


def _has_documents(text: str) -> bool:
    """Whether it has several documents, or one that has a name."""
    count = text.count("\n---") + text.startswith("---")
    return count > 1 or (count == 1 and (not text.startswith("---\n") or "\nkind:" in text))


def _below(texts: tuple[str, ...], above: list[tuple[int, int]]) -> KeyedBlock | None:
    text = texts[0]
    keys: list[str] = []
    start = outer = 0
    for at, indent in reversed(above):
        key = KEY.match(text, at + indent)
        nothing = key and _NOTHING_ELSE.match(text, key.end())
        if key is None or nothing is None:
            break
        keys.append(key.group(1))
        start, outer = nothing.end(), indent
    if not keys:
        return None
    ends = [end_of_entry(side, start, outer) for side in texts]
    after = {len(side) - end for side, end in zip(texts, ends, strict=True)}
    if len(after) > 1 or min(ends) == start or len({side[end:] for side, end in zip(texts, ends, strict=True)}) > 1:
        return None
    return KeyedBlock(start, after.pop(), tuple(keys))


@lru_cache(maxsize=64)
def _less_indented(indent: int) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,{indent - 1}}}(?=[^ \n\#])")
