"""YAML by libyaml's events, which say where in the text each value stands."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeGuard

import yaml

from contextbase.compare.values import ValueNode, list_node, mapping_node
from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured

__all__ = ["read_yaml"]

_MAX_DEPTH: Final = 100
_STRING: Final = "tag:yaml.org,2002:str"
_TICKS_PER_EVENT: Final = 8
_IMPLICIT: Final = yaml.SafeLoader.yaml_implicit_resolvers  # by first character: what is not a string, and how it looks


def read_yaml(text: str, budget: Budget) -> ValueNode:
    """The document; of a file with several, the list of them. An alias is a scalar: it is not followed."""
    try:
        loader = yaml.CSafeLoader(text)
    except (yaml.YAMLError, ValueError) as problem:
        raise Unstructured("it is not valid YAML") from problem
    try:
        documents = _Reader(text, loader, budget).documents()
    except (yaml.YAMLError, ValueError) as problem:
        raise Unstructured("it is not valid YAML") from problem
    finally:
        loader.dispose()
    if not documents:
        raise Unstructured("it is empty")
    return documents[0] if len(documents) == 1 else list_node(lambda: text, documents)


class _Reader:
    def __init__(self, text: str, loader: yaml.CSafeLoader, budget: Budget) -> None:
        self.text = text
        self.loader = loader
        self.budget = budget
        self.end = 0  # of the last value read

    def documents(self) -> list[ValueNode]:
        found: list[ValueNode] = []
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                found.append(self._node(self._next(), 0))
        return found

    def _next(self) -> yaml.Event:
        self.budget.tick(_TICKS_PER_EVENT)
        event = self.loader.get_event()
        if event is None:
            raise Unstructured("it ends too early")
        return event

    def _node(self, event: yaml.Event, depth: int) -> ValueNode:
        if depth > _MAX_DEPTH:
            raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")
        start, end = _span(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(start, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(start, depth)
        self.end = end
        text = self.text[start:end]
        return ValueNode(lambda: text, event.value if _is_string(event) else text.encode())

    def _sequence(self, start: int, depth: int) -> ValueNode:
        elements: list[ValueNode] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            elements.append(self._node(event, depth + 1))
        return list_node(self._writer(start, event), elements)

    def _mapping(self, start: int, depth: int) -> ValueNode:
        members: dict[str, ValueNode] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise Unstructured("a key is not a plain value")
            if event.value in members:
                raise Unstructured(f"the key {event.value[:40]!r} stands twice")
            members[event.value] = self._node(self._next(), depth + 1)
        return mapping_node(self._writer(start, event), members)

    def _writer(self, start: int, last: yaml.Event) -> Callable[[], str]:
        """The text of a collection: to its bracket, or, of a block, to the end of its last value."""
        closed, end = _span(last)
        if end > closed:
            self.end = end
        return partial(self.text.__getitem__, slice(start, self.end))


def _span(event: yaml.Event) -> tuple[int, int]:
    if event.start_mark is None or event.end_mark is None:
        raise Unstructured("the parser does not say where a value stands")
    return event.start_mark.index, event.end_mark.index


def _is_string(event: yaml.Event) -> TypeGuard[yaml.ScalarEvent]:
    if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, _STRING):
        return False
    is_plain = event.implicit[0]
    return not is_plain or not any(looks.match(event.value) for _, looks in _IMPLICIT.get(event.value[:1], ()))
