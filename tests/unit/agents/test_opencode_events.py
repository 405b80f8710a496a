"""What Opencode says, as our events: late ends, cut messages, tools that never end, errors."""

from typing import Any

import pytest

from contextbase.agents.opencode_events import OpencodeTranslator


def told(kind: str, **values: Any) -> dict[str, Any]:
    return {"type": kind, "properties": {"sessionID": "s", **values}}


def part(kind: str, part_id: str = "p", **values: Any) -> dict[str, Any]:
    about = {"id": part_id, "messageID": "m", "sessionID": "s", "type": kind, **values}
    return told("message.part.updated", part=about)


def said(text: str, part_id: str = "p") -> list[dict[str, Any]]:
    """A part begins."""
    delta = told("message.part.delta", messageID="m", partID=part_id, field="text", delta=text)
    return [part("text", part_id, text="", time={"start": 1}), delta]


def whole(text: str, part_id: str = "p") -> dict[str, Any]:
    return part("text", part_id, text=text, time={"start": 1, "end": 2})


def tool(status: str, name: str = "bash", **state: Any) -> dict[str, Any]:
    return part("tool", "t", tool=name, callID="c", state={"status": status, **state})


ANSWER = told("message.updated", info={"id": "m", "role": "assistant"})
RETRY = told("session.status", status={"type": "retry", "attempt": 1, "message": "Connection reset"})
FINISH = part("step-finish", "f", tokens={"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}})
IDLE = told("session.idle")


def translated(*events: dict[str, Any]) -> tuple[OpencodeTranslator, list[tuple[str, dict[str, Any]]]]:
    translator = OpencodeTranslator("run:1", "gpt-5.5")
    translator.session_id = "s"
    return translator, [each for event in (ANSWER, *events) for each in translator.events(event)]


def test_a_message_that_is_cut_is_said_again_under_the_same_id() -> None:
    _, events = translated(*said("Hel"), RETRY, *said("Hello.", "q"), whole("Hello.", "q"), FINISH)
    assert events == [
        ("message.delta", {"message_id": "run:1:1", "part": 0, "text": "Hel"}),
        ("message.restarted", {"message_id": "run:1:1"}),
        ("message.delta", {"message_id": "run:1:1", "part": 0, "text": "Hello."}),
        ("message.done", {"message_id": "run:1:1", "part": 0, "text": "Hello."}),
        ("message.stop", {"message_id": "run:1:1"}),
    ]


def test_the_end_of_a_text_that_comes_after_a_tool_began_is_told_once_and_before_it() -> None:
    running = tool("running", input={"command": "ls"})
    _, events = translated(
        *said("One"), tool("pending"), running, running, whole("One"), tool("completed", output="a\n")
    )
    kinds = [kind for kind, _ in events]
    assert kinds == ["message.delta", "message.done", "message.stop", "tool.start", "tool.end"]
    assert (events[3][1]["name"], events[3][1]["title"]) == ("bash", "ls")
    assert (events[4][1]["status"], events[4][1]["output"]) == ("ok", "a")


def test_what_is_open_when_a_turn_is_aborted_is_closed_once() -> None:
    translator, events = translated(tool("running", input={}), IDLE, tool("error", error="Aborted"))
    assert [data["status"] for kind, data in events if kind == "tool.end"] == ["error"]
    assert not list(translator.closing())


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("write", "write"), ("grep", "search"), ("webfetch", "web"), ("contextbase_read", "mcp.contextbase.read")],
)
def test_tools_have_names_that_all_agents_share(name: str, canonical: str) -> None:
    _, events = translated(tool("running", name, input={}))
    assert events[0][1]["name"] == canonical


def test_todos_and_tokens_are_told() -> None:
    todos = [{"content": "one", "status": "in_progress"}, {"content": "two", "status": "cancelled"}]
    _, events = translated(told("todo.updated", todos=todos), FINISH, FINISH, IDLE)
    [snapshot] = [data for kind, data in events if kind == "todo.snapshot"]
    assert [(todo["content"], todo["status"]) for todo in snapshot["todos"]] == [("one", "doing"), ("two", "canceled")]
    [used] = [data for kind, data in events if kind == "usage"]
    assert (used["input_tokens"], used["output_tokens"], used["cache_read_tokens"]) == (10, 6, 6)


def test_what_the_user_and_other_sessions_say_is_left_out() -> None:
    mine = part("text", "u", messageID="user", text="Do it.", time={"end": 1})
    other = told("message.part.delta", partID="p", field="text", delta="Not mine.", sessionID="helper")
    _, events = translated(mine, *said("")[:1], other)
    assert events == []


@pytest.mark.parametrize(
    ("name", "status", "code", "is_retryable"),
    [
        ("APIError", 401, "model_denied", False),
        ("APIError", 429, "rate_limited", True),
        ("APIError", 400, "model_error", False),
        ("APIError", 503, "model_error", True),
        ("APIError", None, "model_unreachable", True),
        ("ProviderAuthError", None, "model_denied", False),
        ("UnknownError", None, "agent_error", False),
    ],
)
def test_errors_have_codes(name: str, status: int | None, code: str, is_retryable: bool) -> None:
    error = {"name": name, "data": {"message": "No.", "statusCode": status}}
    translator, _ = translated(told("session.error", error=error), IDLE)
    assert translator.end is not None
    assert translator.end.failure is not None
    assert (translator.end.failure.code, translator.end.failure.is_retryable) == (code, is_retryable)
