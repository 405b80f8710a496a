"""One configuration out of its layers, app <- project <- user <- run, and which layer each value is from. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contextbase.wire.agent_config import AgentConfig, ConfigLayer, SecretReference

__all__ = ["EffectiveConfig", "effective_config", "secrets_of"]

_BY_KEY: Final = frozenset({"mcp_servers", "commands", "limits", "budgets", "timeouts", "environment"})


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveConfig:
    config: AgentConfig
    provenance: Mapping[str, ConfigLayer]  # by dotted name: model, limits.seconds, environment.LANG


def effective_config(layers: Sequence[tuple[ConfigLayer, AgentConfig]]) -> EffectiveConfig:
    """The later layer's value holds. Objects are joined key by key, and a key that a later layer has as null is gone;
    lists and all else are replaced whole."""
    values: dict[str, Any] = {}
    provenance: dict[str, ConfigLayer] = {}
    for layer, config in layers:
        for name in config.model_fields_set:
            value = getattr(config, name)
            if value is None:
                continue
            if name not in _BY_KEY:
                values[name], provenance[name] = value, layer
                continue
            joined = values.setdefault(name, {})
            for key, item in _items(value):
                dotted = f"{name}.{key}"
                if item is None:
                    joined.pop(key, None)
                    provenance.pop(dotted, None)
                else:
                    joined[key], provenance[dotted] = item, layer
    config = AgentConfig.model_validate({name: value for name, value in values.items() if value or name not in _BY_KEY})
    return EffectiveConfig(config=config, provenance=dict(sorted(provenance.items())))


def secrets_of(config: AgentConfig) -> frozenset[str]:
    """The names of the secrets that it refers to."""
    return frozenset(reference.secret for reference in _references(config))


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Of a mapping, or of an object of named values: those that were given."""
    if isinstance(value, Mapping):
        yield from value.items()
    else:
        for key in sorted(value.model_fields_set):
            if (item := getattr(value, key)) is not None:
                yield key, item


def _references(config: AgentConfig) -> Iterator[SecretReference]:
    values: list[object] = list((config.environment or {}).values())
    for server in (config.mcp_servers or {}).values():
        if server is not None:
            values += [*server.headers.values(), *server.environment.values()]
    yield from (value for value in values if isinstance(value, SecretReference))
