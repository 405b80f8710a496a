"""JSON, with or without comments, and JSON lines, by the readers that merging uses."""

from functools import partial
from typing import Final

from contextbase.compare.values import Data, Parts, ValueNode, list_node
from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, items_of
from contextbase.merge.formats.json import JsonFormat
from contextbase.merge.formats.jsonl import JsonLinesFormat
from contextbase.merge.ports import Unstructured

__all__ = ["read_json", "read_json_lines"]

_STRICT: Final = JsonFormat(with_comments=False)
_WITH_COMMENTS: Final = JsonFormat(with_comments=True)
_LINES: Final = JsonLinesFormat()
_MAX_DEPTH: Final = 200


def read_json(text: str, budget: Budget) -> ValueNode:
    try:
        document = _STRICT.parse(text, budget)
    except Unstructured:
        document = _WITH_COMMENTS.parse(text, budget)
    (item,) = items_of(document)
    return _bounded(_node(item.body))


def read_json_lines(text: str, budget: Budget) -> ValueNode:
    records = [_node(item.body) for item in items_of(_LINES.parse(text, budget))]
    return _bounded(list_node(lambda: text, records))


def _bounded(node: ValueNode) -> ValueNode:
    """The values are walked by functions that call themselves."""
    level: list[Data] = [node.data]
    for _ in range(_MAX_DEPTH):
        inner = [part for part in level if isinstance(part, (dict, list))]
        if not inner:
            return node
        level = [part for parts in inner for part in (parts.values() if isinstance(parts, dict) else parts)]
    raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")


def _node(body: Body) -> ValueNode:
    if isinstance(body, Folded):
        return ValueNode(lambda: body.text, body.value, partial(_parts, body))
    return ValueNode(lambda: body.text, body.value)


def _parts(body: Folded) -> Parts:
    group: Group = body.unfold()
    if isinstance(body.value, dict):
        return {str(item.key): _node(item.body) for item in items_of(group)}
    return [_node(item.body) for item in items_of(group)]
