"""The agent programs of a server, as a part of the clients: `client.agents`."""

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.wire.agent import AgentList

__all__ = ["AsyncInstalledAgents"]


class AsyncInstalledAgents:
    """The agent programs that sessions can use."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> AgentList:
        """All that the server knows, whether their programs are installed there, and which is the default."""
        return await self._connection.read(AgentList, "/api/v1/agents")
