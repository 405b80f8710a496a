"""Whether a text is YAML, by libyaml: events only, so that neither depth nor aliases can grow out of bounds."""

from typing import Final

import yaml

from contextbase.merge.budget import Budget

__all__ = ["is_valid_yaml"]

_MAX_DEPTH: Final = 200
_MERGE_KEY: Final = "<<"  # which may be repeated
_EVENTS_PER_TICK: Final = 32


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
    """A loop without calls: most of the time of a check is spent here."""
    keys: set[str] | None = None  # those of the innermost open collection so far; None unless it is a mapping
    expects_key = False
    outer: list[tuple[set[str] | None, bool]] = []
    anchors: set[str] = set()
    events = 0
    while (event := loader.get_event()) is not None:
        events += 1
        if not events % _EVENTS_PER_TICK:
            budget.tick(_EVENTS_PER_TICK * 4)
        if type(event) is yaml.ScalarEvent:
            if event.anchor is not None:
                anchors.add(event.anchor)
            if keys is not None:
                if expects_key:
                    if event.value in keys and event.value != _MERGE_KEY:
                        return False
                    keys.add(event.value)
                expects_key = not expects_key
        elif isinstance(event, yaml.CollectionEndEvent):
            keys, expects_key = outer.pop()
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.anchor is not None:
                anchors.add(event.anchor)
            outer.append((keys, not expects_key))
            if len(outer) > _MAX_DEPTH:
                return False
            expects_key = type(event) is yaml.MappingStartEvent
            keys = set() if expects_key else None
        elif isinstance(event, yaml.AliasEvent):
            expects_key = not expects_key
            if event.anchor not in anchors:
                return False
        elif isinstance(event, yaml.DocumentStartEvent):
            anchors.clear()
    return True
