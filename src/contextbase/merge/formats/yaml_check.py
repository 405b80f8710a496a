"""Whether a text is YAML, by libyaml: events only, so that neither depth nor aliases can grow out of bounds."""

from typing import Final

import yaml

from contextbase.merge.budget import Budget

__all__ = ["is_valid_yaml"]

_MAX_DEPTH: Final = 200


class _Level:
    """An open collection; `keys` and `expects_key` of a mapping only."""

    __slots__ = ("expects_key", "keys")

    def __init__(self, *, is_mapping: bool) -> None:
        self.keys: set[str] | None = set() if is_mapping else None
        self.expects_key = is_mapping

    def takes(self, key: str | None) -> bool:
        """Note a child; False if it is a key that stands here already. `<<` may be repeated."""
        if self.keys is None:
            return True
        is_key, self.expects_key = self.expects_key, not self.expects_key
        if not is_key or key is None or key == "<<":
            return True
        fresh = key not in self.keys
        self.keys.add(key)
        return fresh


def is_valid_yaml(text: str, budget: Budget) -> bool:
    """Well formed, every alias defined, no key twice in a mapping, and not nested absurdly deep."""
    try:
        loader = yaml.CSafeLoader(text)
    except (yaml.YAMLError, ValueError):
        return False
    try:
        return _is_sound(loader, budget)
    except (yaml.YAMLError, ValueError):
        return False
    finally:
        loader.dispose()


def _is_sound(loader: yaml.CSafeLoader, budget: Budget) -> bool:
    levels: list[_Level] = []
    anchors: set[str] = set()
    while (event := loader.get_event()) is not None:
        budget.tick(4)
        if type(event) is yaml.ScalarEvent:
            if event.anchor is not None:
                anchors.add(event.anchor)
            if levels and not levels[-1].takes(event.value):
                return False
        elif isinstance(event, yaml.CollectionEndEvent):
            levels.pop()
        elif isinstance(event, yaml.CollectionStartEvent):
            if levels:
                levels[-1].takes(None)
            if event.anchor is not None:
                anchors.add(event.anchor)
            levels.append(_Level(is_mapping=type(event) is yaml.MappingStartEvent))
            if len(levels) > _MAX_DEPTH:
                return False
        elif isinstance(event, yaml.AliasEvent):
            if levels:
                levels[-1].takes(None)
            if event.anchor not in anchors:
                return False
        elif isinstance(event, yaml.DocumentStartEvent):
            anchors.clear()
    return True
