"""Token counts are read from an answer as it passes, however it is cut into pieces."""

import json
from typing import Any

import pytest

from contextbase.models.metering import UsageMeter
from contextbase.models.model import Dialect, TokenCounts


def sse(*documents: dict[str, Any]) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(document).encode() + b"\n\n" for document in documents)


MESSAGES = sse(
    {
        "type": "message_start",
        "message": {
            "usage": {
                "input_tokens": 7,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 50,
                "output_tokens": 1,
            }
        },
    },
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 'he said "usage" once'}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 42}},
    {"type": "message_stop"},
)
RESPONSES = sse(
    {"type": "response.created", "response": {"usage": None}},
    {
        "type": "response.completed",
        "response": {
            "usage": {"input_tokens": 107, "input_tokens_details": {"cached_tokens": 100}, "output_tokens": 42}
        },
    },
)
CHAT = sse(
    {"choices": [], "usage": None},
    {
        "choices": [],
        "usage": {"prompt_tokens": 107, "prompt_tokens_details": {"cached_tokens": 100}, "completion_tokens": 42},
    },
)


@pytest.mark.parametrize(
    ("dialect", "stream", "expected"),
    [
        (Dialect.MESSAGES, MESSAGES, TokenCounts(input=7, output=42, cache_read=100, cache_write=50)),
        (Dialect.RESPONSES, RESPONSES, TokenCounts(input=7, output=42, cache_read=100)),
        (Dialect.CHAT, CHAT, TokenCounts(input=7, output=42, cache_read=100)),
    ],
    ids=["messages", "responses", "chat"],
)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_is_metered(dialect: Dialect, stream: bytes, expected: TokenCounts, size: int) -> None:
    meter = UsageMeter(dialect, is_stream=True, request_bytes=0)
    for start in range(0, len(stream), size):
        meter.feed(stream[start : start + size])
    assert meter.counts() == expected


def test_a_whole_answer_is_metered() -> None:
    meter = UsageMeter(Dialect.MESSAGES, is_stream=False, request_bytes=0)
    meter.feed(b'{"type":"message","usage":{"input_tokens":3,')
    meter.feed(b'"output_tokens":4}}')
    assert meter.counts() == TokenCounts(input=3, output=4)


def test_a_stream_that_breaks_off_is_estimated_from_what_came() -> None:
    meter = UsageMeter(Dialect.MESSAGES, is_stream=True, request_bytes=400)
    meter.feed(MESSAGES[: MESSAGES.index(b'event: x\ndata: {"type": "message_delta')])
    counts = meter.counts()
    assert counts.is_estimate
    assert (counts.input, counts.cache_read) == (7, 100)
    assert counts.output > 1


@pytest.mark.parametrize(
    "odd", [b'data: {"usage": 1}\n', b'data: "usage"\n', b'data: ["usage"\n', b"\xff" * 50 + b"\n"]
)
def test_odd_bytes_are_no_error(odd: bytes) -> None:
    meter = UsageMeter(Dialect.RESPONSES, is_stream=True, request_bytes=40)
    meter.feed(odd)
    assert meter.counts().is_estimate
