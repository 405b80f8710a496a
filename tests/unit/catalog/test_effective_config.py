from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contextbase.catalog.effective_config import effective_config, secrets_of
from contextbase.wire.agent_config import AgentConfig, ConfigLayer

APP, PROJECT, USER, RUN = ConfigLayer


def _effective(*layers: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    found = effective_config(
        [(layer, AgentConfig.model_validate(body)) for layer, body in zip(ConfigLayer, layers, strict=False)]
    )
    return found.config.model_dump(mode="json", exclude_none=True), dict(found.provenance)


def test_later_layers_override_earlier_ones_and_each_value_says_where_it_is_from() -> None:
    config, provenance = _effective(
        {"provider": "claude", "model": "a", "limits": {"seconds": 60, "output_bytes": 4096}, "skills": ["x", "y"]},
        {"model": "b", "environment": {"LANG": "C", "TOKEN": {"secret": "token"}}},
        {"limits": {"seconds": 30}, "skills": ["z"], "environment": {"LANG": None}},
        {"model": "d", "landing": "never"},
    )
    assert config == {
        "provider": "claude",
        "model": "d",
        "limits": {"seconds": 30, "output_bytes": 4096},
        "skills": ["z"],
        "environment": {"TOKEN": {"secret": "token"}},
        "landing": "never",
    }
    assert provenance == {
        "provider": "app",
        "model": "run",
        "limits.seconds": "user",
        "limits.output_bytes": "app",
        "skills": "user",
        "environment.TOKEN": "project",
        "landing": "run",
    }


def test_a_layer_without_a_value_changes_nothing() -> None:
    assert _effective({"model": "a"}, {"model": None}, {}) == ({"model": "a"}, {"model": "app"})
    assert _effective() == ({}, {})


_LAYER = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["a", "b"]),
        "landing": st.sampled_from(["auto", "never"]),
        "commands": st.dictionaries(st.sampled_from(["x", "y"]), st.one_of(st.none(), st.just("text")), max_size=2),
    },
)


@given(st.lists(_LAYER, min_size=1, max_size=4))
def test_every_effective_value_has_a_source_that_set_it(layers: list[dict[str, Any]]) -> None:
    config, provenance = _effective(*layers)
    leaves = {key for key in config if key != "commands"} | {f"commands.{key}" for key in config.get("commands", {})}
    assert leaves == provenance.keys()
    for dotted, layer in provenance.items():
        name, _, key = dotted.partition(".")
        body = layers[list(ConfigLayer).index(ConfigLayer(layer))]
        assert (body[name][key] == config[name][key]) if key else (body[name] == config[name])


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": 1},
        {"provider": ""},
        {"limits": {"seconds": 0}},
        {"limits": {"seconds": "60"}},
        {"environment": {"PATH": "/evil"}},
        {"environment": {"LD_PRELOAD": "/evil/x.so"}},
        {"environment": {"ANTHROPIC_BASE_URL": "http://example.com"}},
        {"environment": {"A": {"secret": "../x"}}},
        {"mcp_servers": {"x": {"type": "pipe"}}},
        {"landing": "maybe"},
        {"profile": "reckless"},
        {"workspace_kind": "tmpfs"},
        {"system_prompt": "a\x00b"},
    ],
)
def test_a_layer_that_breaks_the_schema_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgentConfig.model_validate(wrong)


def test_the_secrets_that_a_configuration_names_are_found() -> None:
    config = AgentConfig.model_validate(
        {
            "environment": {"A": {"secret": "one"}, "B": "plain"},
            "mcp_servers": {
                "x": {"type": "http", "url": "https://a.example", "headers": {"Authorization": {"secret": "two"}}},
                "y": {"type": "stdio", "command": ["run"], "environment": {"K": {"secret": "three"}}},
                "z": None,
            },
        }
    )
    assert secrets_of(config) == {"one", "two", "three"}
