"""TOML: tables and keys, arrays and inline tables; comments belong to what they stand above."""

import re
import tomllib
from collections.abc import Hashable
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Group, Item, Leaf
from contextbase.merge.formats.flow import FlowStyle, end_of_value, flow_value
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.model import Place, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured

__all__ = ["TomlFormat"]

_KEY_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY: Final = rf"{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART})*"
_ENTRY: Final = re.compile(rf"[ \t]*({_KEY})[ \t]*=[ \t]*")
_HEADER: Final = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_KEY})[ \t]*(\]\]?)[ \t]*(?:\#[^\n]*)?\n")
_MARGIN: Final = re.compile(r"(?:[ \t]*(?:\#[^\n]*)?\n)*")
_LINE_END: Final = re.compile(r"[ \t]*(?:\#[^\n]*)?\n")
_STRING: Final = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''', re.DOTALL
)
_BARE: Final = re.compile(r"[^\s#,\[\]{}]+(?: [\d:.]+[^\s#,\[\]{}]*)?")
_TOKEN: Final = re.compile(_STRING.pattern + r"""|\#[^\n]*|[\[\]{},=]|[ \t\n\r]+|[^\s"'\#\[\]{},=]+|.""", re.DOTALL)
_IDENTIFYING: Final = ("id", "key", "name", "module", "path", "file", "url", "pattern")


class TomlFormat:
    name = "toml"

    def parse(self, text: str, budget: Budget) -> Group:
        return _Parser(text, budget).document()

    def is_valid(self, text: str, budget: Budget) -> bool:
        budget.tick(len(text) // 4)
        try:
            tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):
            return False
        return True

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> Place:
        parts = [part for step in path for part in (step if isinstance(step, tuple) else (step,))]
        return Place(kind=PlaceKind.KEY, at=".".join(str(part) for part in parts if part != ""))


class _Parser:
    def __init__(self, text: str, budget: Budget) -> None:
        self.text = text
        self.budget = budget
        self.at = 0
        # The element of each array of tables that sub-tables below it belong to: ("bin",) -> ("bin", "server").
        self.elements: dict[tuple[str, ...], tuple[Hashable, ...]] = {}
        self.seen: set[Hashable] = set()

    def document(self) -> Group:
        root, tail = self._entries()
        tables = [Item(key=(), body=root)]
        while (header := _HEADER.match(self.text, self.at)) is not None:
            self.at = header.end()
            lead = tail
            body, tail = self._entries()
            key = self._table_key(header, body)
            if key in self.seen:
                raise Unstructured(f"the table {header.group(2)} stands twice")
            self.seen.add(key)
            tables.append(Item(key=key, lead=lead, head=header.group(), body=body))
        if self.at < len(self.text):
            line = self.text.count("\n", 0, self.at) + 1
            raise Unstructured(f"line {line} is neither a table nor a key")
        tables.append(Item(key=("", "end of file"), body=Leaf(tail, tail)))
        return Group(kind="document", items=tuple(tables))

    def _entries(self) -> tuple[Group, str]:
        """The keys up to the next table, and the blank lines and comments above that."""
        items: list[Item] = []
        keys: set[str] = set()
        while True:
            self.budget.tick()
            lead = self._match(_MARGIN)
            head = _ENTRY.match(self.text, self.at)
            if head is None:
                return Group(kind="table", items=tuple(items)), lead
            self.at = head.end()
            key = ".".join(_key_parts(head.group(1)))
            if key in keys:
                raise Unstructured(f"the key {key} stands twice")
            keys.add(key)
            body = self._value()
            trail = self._match(_LINE_END)
            if not trail:
                raise Unstructured(f"something follows the value of {key}")
            items.append(Item(key=key, lead=lead, head=head.group(), body=body, trail=trail))

    def _value(self) -> Body:
        start = self.at
        if self.text.startswith(("[", "{"), start):
            self.at = end_of_value(self.text, start, _STYLE, self.budget)
        elif not self._match(_STRING) and not self._match(_BARE):
            raise Unstructured("a key has no value")
        return flow_value(self.text[start : self.at], _STYLE, self.budget)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def _table_key(self, header: re.Match[str], body: Group) -> tuple[Hashable, ...]:
        path = _key_parts(header.group(2))
        key: tuple[Hashable, ...] = path
        for length in range(len(path), 0, -1):
            if path[:length] in self.elements and (length < len(path) or header.group(1) == "["):
                key = (*self.elements[path[:length]], *path[length:])
                break
        if header.group(1) == "[":
            return key
        identity = _identity(body)
        element = (*key, identity)
        nth = 2
        while element in self.seen:
            element = (*key, identity, nth)
            nth += 1
        self.elements[path] = element
        return element


def _identity(table: Group) -> Hashable:
    """What tells an element of an array of tables from its siblings: a naming key, or else its first one."""
    entries = {item.key: item.body for item in table.items if isinstance(item, Item)}
    for name in _IDENTIFYING:
        body = entries.get(name)
        if isinstance(body, Leaf):
            return body.value
    return next((body.text for body in entries.values()), "")


def _key_parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_KEY_PART, text))


def _scalar(text: str) -> Hashable:
    """A string without escapes means the same in either kind of quotes, and is what lists are sorted by."""
    if len(text) > 1 and text[0] in "\"'" and text[:3] not in ('"""', "'''") and "\\" not in text:
        return text[1:-1]
    return ("literal", text)


_STYLE: Final = FlowStyle(token=_TOKEN, key_separator="=", scalar=_scalar, key=lambda text: ".".join(_key_parts(text)))
