"""MCP servers of a turn: this server's own tools, and those that the session's configuration names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["OWN_SERVER", "AgentMcpServer"]

OWN_SERVER: Final = "contextbase"


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentMcpServer:
    """One that the agent's program starts (`command`), or one that it reaches through us, at a path of loopback."""

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = ""
