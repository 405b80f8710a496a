"""The official MCP client, connected to a server of ours by each transport and in each era of the protocol."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.support.server import PROGRAM, ServerProcess

__all__ = ["ERAS", "TRANSPORTS", "connected", "text_of"]

TRANSPORTS = ("http", "stdio")
ERAS = {"handshake": "legacy", "stateless": "auto"}


@asynccontextmanager
async def connected(
    server: ServerProcess, token: str, *, transport: str = "http", era: str = "stateless", **headers: str
) -> AsyncIterator[Client]:
    """`headers`: project and agent, as the bridge's options or as headers."""
    mode: Any = ERAS[era]
    if transport == "stdio":
        options = [part for name, value in headers.items() for part in (f"--{name}", value)]
        parameters = StdioServerParameters(
            command=PROGRAM,
            args=["mcp", *options],
            env={"CONTEXTBASE_URL": server.url, "CONTEXTBASE_TOKEN": token},
        )
        async with Client(parameters, mode=mode) as client:
            yield client
        return
    sent = {"Authorization": f"Bearer {token}"}
    sent |= {f"X-Contextbase-{name.capitalize()}": value for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=60) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)
