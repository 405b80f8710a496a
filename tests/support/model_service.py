"""A model service that keeps what it was sent, and answers with what a test gave it."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from contextbase.models.http_stream import AsgiReceive, AsgiSend

__all__ = ["ModelService", "message_answer"]

Answer = tuple[int, dict[str, str], list[bytes]]


class ModelService:
    def __init__(self, *answers: Answer) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answers = list(answers)  # the last again and again
        self.goes_on = asyncio.Event()  # before the last piece of an answer
        self.goes_on.set()
        self.was_cut = asyncio.Event()

    async def __call__(self, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend) -> None:
        body = b""
        while (message := await receive())["more_body"]:
            body += message["body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append((f"{scope['path']}?{scope['query_string'].decode()}", headers, body))
        status, more, pieces = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        named = [(name.encode(), value.encode()) for name, value in more.items()]
        await send({"type": "http.response.start", "status": status, "headers": named})
        try:
            for piece in pieces[:-1]:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.was_cut.set()
            raise
        await send({"type": "http.response.body", "body": pieces[-1]})


def message_answer(number: int = 1, **usage: int) -> Answer:
    """As Anthropic's API answers without a stream."""
    document = {"type": "message", "usage": {"input_tokens": 0, "output_tokens": 0} | usage}
    return 200, {"request-id": f"req_{number}", "content-type": "application/json"}, [json.dumps(document).encode()]
