"""All agents there are."""

from contextbase.agents.claude import ClaudeAdapter
from contextbase.agents.codex import CodexAdapter
from contextbase.agents.ports import AgentAdapter
from contextbase.agents.scripted import ScriptedAdapter

__all__ = ["adapter_named", "adapters"]


def adapters() -> tuple[AgentAdapter, ...]:
    return (ClaudeAdapter(), CodexAdapter(), ScriptedAdapter())


def adapter_named(name: str) -> AgentAdapter | None:
    return next((adapter for adapter in adapters() if name in (adapter.name, *adapter.other_names)), None)
