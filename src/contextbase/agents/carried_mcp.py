"""Requests of MCP that an agent program sends through its adapter, carried to this server's own tools."""

import json
from collections.abc import Mapping
from typing import Any, Final

from contextbase.agents.loopback_http import requested

__all__ = ["CarriedMcp"]

_LONGEST: Final = 32 << 20
_UNAVAILABLE: Final = -32000  # JSON-RPC's code for what a server cannot do now


class CarriedMcp:
    """`url`: of a server without sessions. Nothing is kept but the version of the protocol that both agreed on."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._headers = {"Accept": "application/json, text/event-stream"}

    async def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What the server answers; an error that the program understands when it cannot be reached."""
        try:
            answer = await self._asked(message)
        except (OSError, ValueError):
            error = {"code": _UNAVAILABLE, "message": "The server's tools cannot be reached now."}
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        result = answer.get("result")
        if message.get("method") == "initialize" and isinstance(result, dict):
            self._headers["MCP-Protocol-Version"] = str(result.get("protocolVersion"))
        return answer

    async def _asked(self, message: Mapping[str, Any]) -> dict[str, Any]:
        async with requested(self._url, method="POST", body=message, headers=self._headers) as answer:
            said = await answer.read(_LONGEST)
        if "id" not in message:  # a notification: nobody waits for more than that it was taken
            return {"jsonrpc": "2.0", "result": {}}
        value = json.loads(said)
        if not isinstance(value, dict) or not {"result", "error"} & value.keys():
            raise ValueError("That is no answer of a server of MCP.")
        return value
