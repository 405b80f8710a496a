"""What Claude Code says, as our events: cut messages, tools that never end, errors."""

from typing import Any

import pytest

from contextbase.agents.claude_events import ClaudeTranslator


def stream(kind: str, **values: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **values}, "parent_tool_use_id": None}


def start(name: str = "msg_1") -> list[dict[str, Any]]:
    block = {"type": "text", "text": ""}
    return [
        stream("message_start", message={"id": name}),
        stream("content_block_start", index=0, content_block=block),
    ]


def said(text: str) -> dict[str, Any]:
    return stream("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


END = [stream("content_block_stop", index=0), stream("message_stop")]
RETRY = {"type": "system", "subtype": "api_retry", "error_status": None, "retry_delay_ms": 500}


def translated(*lines: dict[str, Any]) -> tuple[ClaudeTranslator, list[tuple[str, dict[str, Any]]]]:
    translator = ClaudeTranslator("run:1")
    return translator, [event for line in lines for event in translator.events(line)]


def test_a_message_that_is_cut_is_said_again_under_the_same_id() -> None:
    _, events = translated(*start(), said("Hel"), RETRY, said("late"), *start("msg_2"), said("Hello."), *END)
    assert events == [
        ("message.delta", {"message_id": "run:1:1", "part": 0, "text": "Hel"}),
        ("message.restarted", {"message_id": "run:1:1"}),
        ("message.delta", {"message_id": "run:1:1", "part": 0, "text": "Hello."}),
        ("message.done", {"message_id": "run:1:1", "part": 0, "text": "Hello."}),
        ("message.stop", {"message_id": "run:1:1"}),
    ]


def test_a_message_that_begins_again_without_a_word_is_said_again_too() -> None:
    _, events = translated(*start(), said("Hel"), *start("msg_2"), said("Hello."), *END)
    assert [kind for kind, _ in events].count("message.restarted") == 1


def test_a_limit_of_requests_is_told() -> None:
    _, events = translated(RETRY | {"error_status": 429})
    assert events == [("rate_limited", {"retry_after": 0.5})]


def test_what_is_open_at_the_end_is_closed() -> None:
    tool = {"type": "tool_use", "id": "t1", "name": "mcp__base__read_file", "input": {"path": "a"}}
    assistant = {"type": "assistant", "message": {"id": "msg_1", "content": [tool]}}
    translator, events = translated(*start(), said("Hel"), assistant)
    assert events[-1][1]["name"] == "mcp.base.read_file"
    closing = list(translator.closing())
    assert [kind for kind, _ in closing] == ["message.done", "message.stop", "tool.end"]
    assert closing[-1][1]["status"] == "error"
    assert list(translator.closing()) == []


def test_long_outputs_are_cut_and_say_so() -> None:
    tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x" * 100_000}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "y" * 100_000}
    _, events = translated(
        {"type": "assistant", "message": {"id": "m", "content": [tool]}},
        {"type": "user", "message": {"content": [result]}},
    )
    (_, begun), (_, done) = events
    assert len(begun["input"]["command"]) < 20_000
    assert len(begun["title"]) == 200
    assert (len(done["output"]), done["truncated"]) == (16 << 10, True)


@pytest.mark.parametrize(
    ("line", "code", "retryable"),
    [
        ({"subtype": "success", "is_error": True, "api_error_status": 429, "result": "slow"}, "rate_limited", True),
        ({"subtype": "success", "is_error": True, "api_error_status": 401, "result": "no"}, "model_denied", False),
        ({"subtype": "success", "is_error": True, "api_error_status": 500, "result": "bad"}, "model_error", True),
        ({"subtype": "error_max_turns"}, "max_turns", False),
        ({"subtype": "error_during_execution", "errors": ["bad"]}, "agent_error", False),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else None,
)
def test_a_result_that_is_an_error_has_a_code(line: dict[str, Any], code: str, retryable: bool) -> None:
    translator, _ = translated({"type": "result", "session_id": "s", **line})
    assert translator.end is not None
    assert translator.end.failure is not None
    assert (translator.end.failure.code, translator.end.failure.is_retryable) == (code, retryable)
    assert translator.end.sdk_session_id == "s"


@pytest.mark.parametrize("line", [{}, {"type": "user", "message": {"content": "hi"}}, {"type": "news"}], ids=str)
def test_what_it_does_not_know_is_nothing(line: dict[str, Any]) -> None:
    assert translated(line)[1] == []
