# Generated from aio/installed_agents.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""The agent programs of a server, as a part of the clients: `client.agents`."""

from contextbase.sdk.blocking.connection import Connection
from contextbase.wire.agent import AgentList

__all__ = ["InstalledAgents"]


class InstalledAgents:
    """The agent programs that sessions can use."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> AgentList:
        """All that the server knows, whether their programs are installed there, and which is the default."""
        return self._connection.read(AgentList, "/api/v1/agents")
