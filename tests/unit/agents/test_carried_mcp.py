"""Requests of MCP that go through an adapter."""

import asyncio
import json
from typing import Any

from contextbase.agents.carried_mcp import CarriedMcp


async def test_answers_are_carried_with_the_version_that_was_agreed_on_and_a_lost_server_is_told() -> None:
    heads: list[str] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("Content-Length"))
        message = json.loads(await reader.readexactly(length))
        heads.append(head)
        result: dict[str, Any] = {"protocolVersion": "2025-06-18"} if message["method"] == "initialize" else {"a": 1}
        said = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) if "id" in message else ""
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(said)}\r\n\r\n{said}".encode())
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    carried = CarriedMcp(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    async with server:
        begun = await carried.answer({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
        assert begun["result"]["protocolVersion"] == "2025-06-18"
        assert "result" in await carried.answer({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = await carried.answer({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert (listed["id"], listed["result"]) == (1, {"a": 1})
    assert ["MCP-Protocol-Version: 2025-06-18" in head for head in heads] == [False, True, True]
    lost = await carried.answer({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert (lost["id"], lost["error"]["code"]) == (2, -32000)
