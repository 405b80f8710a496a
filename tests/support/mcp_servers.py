"""A small MCP server: as a program on standard input and output, and over HTTP behind a password."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.scripted_model import listening

__all__ = ["PROGRAM", "remote_server"]

PROGRAM = """
import json, os, sys
TOOL = {"name": "secret_word", "description": "Says a word.", "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, answer = asked["method"], {}
    if method == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "words", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [TOOL]}
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": "the word is " + os.environ["WORD"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""
"""Needs nothing but Python, and a variable WORD."""


@asynccontextmanager
async def remote_server(password: str, seen: list[dict[str, str]]) -> AsyncIterator[str]:
    """Its address; `seen` gets the headers of each request."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen.append(headers)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if scope["path"] == "/moved":
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"http://other/")]})
            await send({"type": "http.response.body"})
            return
        status, answer = 200, b""
        if headers.get("authorization") != f"Bearer {password}":
            status = 401
        elif scope["method"] != "POST":
            status = 405
        else:
            asked = json.loads(body)
            answer = json.dumps(_answer(asked)).encode() if "id" in asked else b""
            status = 200 if answer else 202
        kinds = [(b"content-type", b"application/json"), (b"set-cookie", b"a=b")]
        await send({"type": "http.response.start", "status": status, "headers": kinds})
        await send({"type": "http.response.body", "body": answer})

    async with listening(app) as url:
        yield url


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": (asked.get("params") or {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "weather", "version": "1"},
        },
        "tools/list": {
            "tools": [{"name": "forecast", "description": "The weather.", "inputSchema": {"type": "object"}}]
        },
        "tools/call": {"content": [{"type": "text", "text": "it will rain"}]},
    }
    return {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
