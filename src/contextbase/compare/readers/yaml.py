"""YAML by libyaml's events, which say where in the text each value stands."""

from typing import Final

import yaml

from contextbase.compare.values import Node, Parts
from contextbase.merge.budget import Budget
from contextbase.merge.ports import Unstructured

__all__ = ["read_yaml"]

_MAX_DEPTH: Final = 100
_STRING: Final = "tag:yaml.org,2002:str"
_TICKS_PER_EVENT: Final = 8
_IMPLICIT: Final = yaml.SafeLoader.yaml_implicit_resolvers  # by first character: what is not a string, and how it looks


def read_yaml(text: str, budget: Budget) -> Node:
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
    return documents[0] if len(documents) == 1 else _list(text, documents)


class _Reader:
    def __init__(self, text: str, loader: yaml.CSafeLoader, budget: Budget) -> None:
        self.text = text
        self.loader = loader
        self.budget = budget

    def documents(self) -> list[Node]:
        found: list[Node] = []
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

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")
        start, end = _span(event)
        if isinstance(event, yaml.ScalarEvent):
            text = self.text[start:end]
            is_string = event.tag in (None, _STRING) and (not event.implicit[0] or _is_string(event.value))
            return Node(text, event.value if is_string else text.encode())
        if isinstance(event, yaml.AliasEvent):
            text = self.text[start:end]
            return Node(text, text.encode())
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(start, depth)
        return self._mapping(start, depth)

    def _sequence(self, start: int, depth: int) -> Node:
        elements: list[Node] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            elements.append(self._node(event, depth + 1))
        return _list(self._source(start, event), elements)

    def _mapping(self, start: int, depth: int) -> Node:
        members: dict[str, Node] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise Unstructured("a key is not a plain value")
            if event.value in members:
                raise Unstructured(f"the key {event.value[:40]!r} stands twice")
            members[event.value] = self._node(self._next(), depth + 1)
        data = {key: member.data for key, member in members.items()}
        return Node(self._source(start, event), data, lambda: members)

    def _source(self, start: int, end: yaml.Event) -> str:
        """The text of a collection; that of a block goes on to whatever comes next."""
        return self.text[start : _span(end)[1]].rstrip()


def _span(event: yaml.Event) -> tuple[int, int]:
    if event.start_mark is None or event.end_mark is None:
        raise Unstructured("the parser does not say where a value stands")
    return event.start_mark.index, event.end_mark.index


def _is_string(value: str) -> bool:
    return not any(looks.match(value) for _, looks in _IMPLICIT.get(value[:1], ()))


def _list(text: str, elements: list[Node]) -> Node:
    def unfold() -> Parts:
        return elements

    return Node(text, [element.data for element in elements], unfold)
