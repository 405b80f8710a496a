"""All agents there are."""

from contextbase.agents.claude import ClaudeAdapter
from contextbase.agents.ports import AgentAdapter
from contextbase.agents.scripted import ScriptedAdapter

__all__ = ["adapter_named", "adapters"]


def adapters() -> tuple[AgentAdapter, ...]:
    return (ClaudeAdapter(), ScriptedAdapter())


def adapter_named(name: str) -> AgentAdapter | None:
    return next((adapter for adapter in adapters() if adapter.name == name), None)
