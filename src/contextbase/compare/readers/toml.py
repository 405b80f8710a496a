"""TOML: the tables and keys that merging reads, put together to the values they make up."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from contextbase.compare.values import Data, ValueNode, list_node, mapping_node
from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, GroupItem, items_of
from contextbase.merge.formats.toml import TomlFormat
from contextbase.merge.ports import Unstructured

__all__ = ["read_toml"]

_FORMAT: Final = TomlFormat()
_BARE_KEY: Final = re.compile(r"[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*")
_TICKS_PER_ENTRY: Final = 16
_MAX_DEPTH: Final = 64


def read_toml(text: str, budget: Budget) -> ValueNode:
    if not _FORMAT.is_valid(text, budget):
        raise Unstructured("it is not valid TOML")
    *tables, _end_of_file = items_of(_FORMAT.parse(text, budget))
    root = _Table()
    for item in tables:
        table = root if not item.head else _headed(root, item.head)
        table.texts.append(item.head + item.body.text)
        _fill(table, item.body, budget)
    return root.node()._replace(write=lambda: text)


class _Table:
    """A table in the making. Its text may stand at several places of the file."""

    def __init__(self) -> None:
        self.members: dict[str, _Table | list[_Table] | ValueNode] = {}
        self.texts: list[str] = []

    def node(self) -> ValueNode:
        members = {key: _finished(member) for key, member in self.members.items()}
        return mapping_node(lambda: "".join(self.texts).strip(), members)

    def below(self, key: str, text: str) -> "_Table":
        """The table of that name, made if it is not there; of an array of tables, the last."""
        inner = self.members.setdefault(key, _Table())
        table = inner[-1] if isinstance(inner, list) else inner
        if isinstance(table, ValueNode):
            raise Unstructured(f"{key[:40]!r} is no table")
        table.texts.append(text)
        return table


def _finished(member: "_Table | list[_Table] | ValueNode") -> ValueNode:
    if isinstance(member, ValueNode):
        return member
    if isinstance(member, _Table):
        return member.node()
    elements = [table.node() for table in member]
    return list_node(lambda: "\n\n".join(element.write() for element in elements), elements)


def _headed(root: _Table, head: str) -> _Table:
    """The table that a header opens."""
    *above, last = _path(tomllib.loads(head))
    table = root
    for key in above:
        table = table.below(key, "")
    if not head.lstrip().startswith("[["):
        return table.below(last, "")
    elements = table.members.setdefault(last, [])
    if not isinstance(elements, list):
        raise Unstructured(f"{last[:40]!r} is no array of tables")
    elements.append(_Table())
    return elements[-1]


def _path(nested: Any) -> list[str]:
    """The keys of `{"a": {"b": ...}}`, which has but one at each level."""
    path: list[str] = []
    while isinstance(nested, dict) and nested:
        ((key, nested),) = nested.items()
        path.append(key)
    if len(path) > _MAX_DEPTH:
        raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")
    return path


def _fill(table: _Table, body: Body, budget: Budget) -> None:
    if not isinstance(body, Folded):
        raise Unstructured("a table is not made of keys")
    for item in items_of(body.unfold()):
        budget.tick(_TICKS_PER_ENTRY)
        *above, last = _keys(item)
        text = f"{item.head}{item.body.text}\n" if above else ""
        inner = table
        for key in above:
            inner = inner.below(key, text)
        inner.members[last] = _value(item.body, budget)


def _keys(item: GroupItem) -> Sequence[str]:
    bare = _BARE_KEY.fullmatch(item.head)
    return (bare.group(1),) if bare is not None else _path(tomllib.loads(item.head + "0"))


def _value(body: Body, budget: Budget) -> ValueNode:
    budget.tick(_TICKS_PER_ENTRY)
    if not isinstance(body, Folded):
        return ValueNode(lambda: body.text, _scalar(body.text))
    group = body.unfold()
    if not group.keyed:
        return list_node(lambda: body.text, [_value(item.body, budget) for item in items_of(group)])
    table = _Table()
    _fill(table, body, budget)
    return table.node()._replace(write=lambda: body.text)


def _scalar(text: str) -> Data:
    if text[0] not in "\"'":
        return text.encode()
    if "\\" not in text and not text.startswith(('"""', "'''")):
        return text[1:-1]
    return tomllib.loads(f"value = {text}\n")["value"]
