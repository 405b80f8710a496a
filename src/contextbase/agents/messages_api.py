"""A client of the Messages API, streamed, over plain HTTP to the model's port on loopback."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from contextbase.agents.loopback_http import HttpAnswer, requested, server_sent_events

__all__ = ["ModelRefused", "message_events"]

_LONGEST_ERROR: Final = 64 << 10
_HEADERS: Final = {
    "Accept": "text/event-stream",
    "Anthropic-Version": "2023-06-01",
    "X-Api-Key": "the-gateway-has-it",
}


class ModelRefused(Exception):
    """The answer was not 200."""

    def __init__(self, status: int, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


async def message_events(url: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """The events of one answer, as they come. `OSError` when the connection breaks, `ModelRefused` otherwise."""
    whole = {**body, "stream": True}
    async with requested(f"{url}/v1/messages", method="POST", body=whole, headers=_HEADERS) as answer:
        if answer.status != 200:
            raise await _refusal(answer)
        async for event in server_sent_events(answer.pieces):
            yield event


async def _refusal(answer: HttpAnswer) -> ModelRefused:
    said = await answer.read(_LONGEST_ERROR)
    try:
        message = str(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        message = said[:500].decode(errors="replace")
    after = answer.headers.get("retry-after", "")
    return ModelRefused(answer.status, message, float(after) if after.isdigit() else None)
