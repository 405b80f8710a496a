"""All agents there are."""

from contextbase.agents.claude import ClaudeAdapter
from contextbase.agents.codex import CodexAdapter
from contextbase.agents.opencode import OpencodeAdapter
from contextbase.agents.ports import AgentAdapter
from contextbase.agents.scripted import ScriptedAdapter

__all__ = ["adapter_named", "adapters", "default_model"]


def adapters() -> tuple[AgentAdapter, ...]:
    return (ClaudeAdapter(), CodexAdapter(), OpencodeAdapter(), ScriptedAdapter())


def adapter_named(name: str) -> AgentAdapter | None:
    return next((adapter for adapter in adapters() if name in (adapter.name, *adapter.other_names)), None)


def default_model(name: str) -> str | None:
    """Of sessions that name no model; None: the one of the settings."""
    adapter = adapter_named(name)
    return None if adapter is None else adapter.default_model
