"""TOML: tables and keys, arrays and inline tables; comments belong to what they stand above."""

import re
from collections import Counter
from collections.abc import Hashable
from functools import partial
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Folded, Group, GroupItem, Leaf
from contextbase.merge.formats.flow import FlowStyle, end_of_value, flow_value
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.formats.toml_check import is_valid_toml
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured
from contextbase.merge.shared import Shared

__all__ = ["TomlFormat"]

_KEY_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY_PARTS: Final = re.compile(_KEY_PART)
_KEY: Final = rf"{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART})*"
_ENTRY: Final = re.compile(rf"[ \t]*({_KEY})[ \t]*=[ \t]*")
_HEADER: Final = re.compile(  # starting with a newline, not `^`: the search for it is many times faster
    rf"\n[ \t]*\[\[?[ \t]*{_KEY}[ \t]*\]\]?[ \t]*(?:\#[^\n]*)?(?=\n)"
)
_MARGIN: Final = re.compile(r"(?:[ \t]*(?:\#[^\n]*)?\n)*")
_LINE_END: Final = re.compile(r"[ \t]*(?:\#[^\n]*)?\n")
_STRING: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}|\'\'\'.*?\'{3,5}|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\n]*+\'''',
    re.DOTALL,
)
_BARE: Final = re.compile(r"[^\s#,\[\]{}]+(?: [\d:.]+[^\s#,\[\]{}]*)?")
_TOKEN: Final = re.compile(_STRING.pattern + r"""|\#[^\n]*|[\[\]{},=]|[ \t\n\r]+|[^\s"'\#\[\]{},=]+|.""", re.DOTALL)


def _bracketed(depth: int) -> str:
    within = rf"[^\"'\#\[\]{{}}]++|{_STRING.pattern}|\#[^\n]*+"
    nested = within
    for _ in range(depth):
        nested = rf"{within}|\[(?:{nested})*+\]|\{{(?:{nested})*+\}}"
    return rf"\[(?:{nested})*+\]|\{{(?:{nested})*+\}}"


_PLAIN_ENTRY: Final = re.compile(  # a key read at one go, unless its brackets are nested too deep
    rf"({_MARGIN.pattern})({_ENTRY.pattern})({_STRING.pattern}|{_BARE.pattern}|{_bracketed(2)})({_LINE_END.pattern})",
    re.DOTALL,
)
_IDENTIFYING: Final = ("id", "key", "name", "module", "path", "file", "url", "pattern")
_NAMED: Final = re.compile(rf"^[ \t]*({'|'.join(_IDENTIFYING)})[ \t]*=[ \t]*({_STRING.pattern}|[\w.]+)", re.MULTILINE)


class TomlFormat:
    name = "toml"

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        return _Parser(text, budget, shared or Shared()).document()

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_valid_toml(text, budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        parts = [part for step in path for part in (step if isinstance(step, tuple) else (step,))]
        return ContestedPlace(kind=PlaceKind.KEY, at=".".join(str(part) for part in parts if part != ""))


class _Parser:
    def __init__(self, text: str, budget: Budget, shared: Shared) -> None:
        self.text = text
        self.budget = budget
        self.shared = shared
        shared.checks_apart = True
        # The element of each array of tables that sub-tables below it belong to: ("bin",) -> ("bin", "server").
        self.elements: dict[tuple[str, ...], tuple[Hashable, ...]] = {}
        self.seen: set[Hashable] = set()
        self.namesakes: Counter[Hashable] = Counter()

    def document(self) -> Group:
        """The tables, each taken apart only when the sides differ in it."""
        # A newline is put before the text, so that the end of a match is the start of the line below it in the text.
        headers = [match.span() for match in _HEADER.finditer("\n" + self.text) if self._is_header(match.start())]
        tables: list[GroupItem] = []
        lead, at, head = "", 0, ""
        for end, after in [*headers, (len(self.text), len(self.text))]:
            entries_end = _without_margin(self.text, at, end)
            table = self._table(lead, head, self.text[at:entries_end])
            if table.key in self.seen:
                raise Unstructured(f"the table {head.strip()[:40]} stands twice")
            self.seen.add(table.key)
            tables.append(table)
            lead = self.text[entries_end:end]
            at, head = after, self.text[end:after]
        tables.append(GroupItem(key=("", "end of file"), body=Leaf(lead, lead)))
        return Group(kind="document", items=tuple(tables))

    def _table(self, lead: str, head: str, text: str) -> GroupItem:
        known = self.shared.items.get((lead, head, text))
        if known is not None and not self.elements and not head.lstrip().startswith("[["):
            return known
        path = _key_parts(head.partition("#")[0] if '"' not in head and "'" not in head else head[: head.rindex("]")])
        key = self._table_key(path, is_element=head.lstrip().startswith("[["), text=text)
        if known is not None and known.key == key:
            return known
        body = Folded(text, text, partial(_entries, text, self.budget, self.shared))
        table = GroupItem(key=key, lead=lead, head=head, body=body)
        # What `[bin.x]` means depends on the `[[bin]]` above it.
        if len(key) == len(path) or len(path) == 1:
            self.shared.items[lead, head, text] = table
        return table

    def _is_header(self, start: int) -> bool:
        """`[x]` on a line of its own may also be an element of an array: then a bracket is open before it."""
        self.budget.tick()
        if self.text.endswith("\n\n", 0, start):
            return True
        before = self.text.rfind("\n", 0, max(0, start - 1)) + 1
        above = self.text[before:start].rstrip()
        return not above.endswith(("[", ",", "=")) or above.lstrip().startswith("#")

    def _table_key(self, path: tuple[str, ...], *, is_element: bool, text: str) -> tuple[Hashable, ...]:
        key: tuple[Hashable, ...] = path
        if self.elements:
            for length in range(len(path), 0, -1):
                if path[:length] in self.elements and (length < len(path) or not is_element):
                    key = (*self.elements[path[:length]], *path[length:])
                    break
        if not is_element:
            return key
        element = (*key, _identity(text))
        self.namesakes[element] += 1
        if self.namesakes[element] > 1:
            element = (*element, self.namesakes[element])
        self.elements[path] = element
        return element


def _entries(text: str, budget: Budget, shared: Shared) -> Group:
    """The keys of a table."""
    items: list[GroupItem] = []
    at, above = 0, ""
    while at < len(text):
        budget.tick()
        follower = shared.followers.get(above)
        if follower is None or not text.startswith(follower[0], at):
            item, end = _entry(text, at, budget, shared)
            follower = shared.followers[above] = text[at:end], item
        above = follower[0]
        at += len(above)
        items.append(follower[1])
    if len({item.key for item in items}) < len(items):
        raise Unstructured("a key stands twice")
    return Group(kind="table", items=tuple(items))


def _entry(text: str, at: int, budget: Budget, shared: Shared) -> tuple[GroupItem, int]:
    """The key that starts at a line, and where the next one does."""
    plain = _PLAIN_ENTRY.match(text, at)
    if plain is not None:
        item = shared.items.get(plain.group())
        if item is None:
            lead, head, key, value, trail = plain.groups()
            body = flow_value(value, _STYLE, budget)
            item = GroupItem(key=".".join(_key_parts(key)), lead=lead, head=head, body=body, trail=trail)
            shared.items[plain.group()] = item
        return item, plain.end()
    lead_end = _end(_MARGIN, text, at)
    head = _ENTRY.match(text, lead_end)
    if head is None:
        raise Unstructured(f"{text[lead_end:].strip()[:40]!r} is neither a table nor a key")
    start = head.end()
    if text.startswith(("[", "{"), start):
        end = end_of_value(text, start, _STYLE, budget)
    else:
        end = _end(_STRING, text, start)
        end = end if end > start else _end(_BARE, text, start)
    trail_end = _end(_LINE_END, text, end)
    if end in (start, trail_end):
        raise Unstructured(f"the value of {head.group(1)[:40]} cannot be read")
    item = GroupItem(
        key=".".join(_key_parts(head.group(1))),
        lead=text[at:lead_end],
        head=head.group(),
        body=flow_value(text[start:end], _STYLE, budget),
        trail=text[end:trail_end],
    )
    return item, trail_end


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return start if match is None else match.end()


def _without_margin(text: str, start: int, end: int) -> int:
    """The end of a table without the blank lines and comments below it: they belong to the next."""
    while end > start:
        line = text.rfind("\n", start, end - 1) + 1 or start
        if not _LINE_END.fullmatch(text, line, end):
            return end
        end = line
    return end


def _identity(text: str) -> Hashable:
    """What tells an element of an array of tables from its siblings: a naming key, or else its first line."""
    named = {match.group(1): match.group(2) for match in _NAMED.finditer(text)}
    return next((_scalar(named[name]) for name in _IDENTIFYING if name in named), text.partition("\n")[0])


def _key_parts(text: str) -> tuple[str, ...]:
    if text.replace("-", "_").isidentifier():
        return (text,)
    return tuple(part.strip("\"'") for part in _KEY_PARTS.findall(text))


def _scalar(text: str) -> Hashable:
    """A string without escapes means the same in either kind of quotes, and is what lists are sorted by."""
    if len(text) > 1 and text[0] in "\"'" and text[:3] not in ('"""', "'''") and "\\" not in text:
        return text[1:-1]
    return ("literal", text)


_STYLE: Final = FlowStyle(token=_TOKEN, key_separator="=", scalar=_scalar, key=lambda text: ".".join(_key_parts(text)))
