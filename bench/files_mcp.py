"""What a small read costs an agent program over MCP, and what a model has to read: ours beside the official server.

Both are programs that talk over standard input and output.
"""

import json
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
from tests.support.agent_clis import installed
from tests.support.postgres import reachable_folder
from tests.support.server import PROGRAM, environment, start_server

__all__ = ["measure_mcp"]

_TEXT: Final = "A line of a plan.\n" * 20
_HANDSHAKE: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}


class _Program:
    """An MCP server as a child process, asked one question at a time."""

    def __init__(self, stack: ExitStack, command: list[str], variables: dict[str, str]) -> None:
        started = time.perf_counter()
        child = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stack.enter_context(child)
        assert child.stdin is not None
        assert child.stdout is not None
        stack.callback(child.stdin.close)
        self._child = child
        self._number = 0
        self.ask("initialize", **_HANDSHAKE)
        self.connect_ms = (time.perf_counter() - started) * 1000
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self._child.stdout is not None
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer: dict[str, Any] = json.loads(self._child.stdout.readline())
            if answer.get("id") == self._number:
                return dict(answer["result"])

    def call(self, tool: str, **arguments: Any) -> str:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        return "".join(block["text"] for block in result["content"])

    def tools(self) -> int:
        """Characters of what a model is given of them."""
        shown = [
            {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
            for tool in self.ask("tools/list")["tools"]
        ]
        return len(json.dumps(shown, separators=(",", ":"), ensure_ascii=False))


def measure_mcp(*, rounds: int) -> dict[str, float]:
    with reachable_folder() as folder, start_server(folder / "data") as server, ExitStack() as stack:
        plain = folder / "plain"
        plain.mkdir()
        (plain / "plan.md").write_text(_TEXT, encoding="utf-8")
        secret = (server.data / "owner-token").read_text().strip()
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {secret}"}, timeout=120) as owner:
            assert owner.post("/api/v1/projects", json={"name": "bench"}).is_success
            written = {"arguments": {"path": "plan.md", "content": _TEXT}}
            assert owner.post("/api/v1/tools/write_file", json=written).is_success
            # The server imports the protocol with the first request; programs that come later do not wait for that.
            owner.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        ours = _Program(stack, [PROGRAM, "mcp"], environment(CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN=secret))
        theirs = _Program(stack, _filesystem(plain), {"PATH": os.environ["PATH"]})
        own, other = [], []
        for _ in range(rounds):
            own.append(_seconds(ours, "read_file", path="plan.md"))
            other.append(_seconds(theirs, "read_text_file", path=str(plain / "plan.md")))
        return {
            "mcp_read_ms": round(median(own) * 1000, 2),
            "fs_server_read_ms": round(median(other) * 1000, 2),
            "mcp_connect_ms": round(ours.connect_ms, 1),
            "fs_server_connect_ms": round(theirs.connect_ms, 1),
            "mcp_tool_list_characters": ours.tools(),
            "fs_server_tool_list_characters": theirs.tools(),
        }


def _filesystem(folder: Path) -> list[str]:
    return [str(installed("filesystem") / "node_modules" / ".bin" / "mcp-server-filesystem"), str(folder)]


def _seconds(program: _Program, tool: str, **arguments: Any) -> float:
    started = time.perf_counter()
    text = program.call(tool, **arguments)
    seconds = time.perf_counter() - started
    assert text == _TEXT
    return seconds
