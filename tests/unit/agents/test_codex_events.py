"""What Codex says, as our events: cut messages, tools that never end, plans, errors."""

from typing import Any

import pytest

from contextbase.agents.codex_events import CodexTranslator


def told(method: str, **values: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": "t", "turnId": "1", **values}}


def said(text: str, item: str = "m") -> dict[str, Any]:
    return told("item/agentMessage/delta", itemId=item, delta=text)


def whole(text: str, item: str = "m") -> dict[str, Any]:
    return told("item/completed", item={"type": "agentMessage", "id": item, "text": text})


def ended(status: str = "completed", **error: Any) -> dict[str, Any]:
    return told("turn/completed", turn={"id": "1", "status": status, "error": error or None})


RETRY = told("error", willRetry=True, error={"codexErrorInfo": {"responseStreamDisconnected": {}}})
COMMAND = {"type": "commandExecution", "id": "c", "command": "/bin/sh -lc ls", "commandActions": [{"command": "ls"}]}


def translated(*lines: dict[str, Any]) -> tuple[CodexTranslator, list[tuple[str, dict[str, Any]]]]:
    translator = CodexTranslator("run:1", "gpt-5.5")
    translator.thread_id = "t"
    lines = (told("turn/started", turn={"id": "1"}), *lines)
    return translator, [event for line in lines for event in translator.events(line)]


def test_a_message_that_is_cut_is_said_again_under_the_same_id() -> None:
    _, events = translated(said("Hel"), RETRY, RETRY, said("Hello.", "n"), whole("Hello.", "n"), ended())
    assert events == [
        ("message.delta", {"message_id": "run:1:1", "part": 0, "text": "Hel"}),
        ("message.restarted", {"message_id": "run:1:1"}),
        ("message.delta", {"message_id": "run:1:1", "part": 0, "text": "Hello."}),
        ("message.done", {"message_id": "run:1:1", "part": 0, "text": "Hello."}),
        ("message.stop", {"message_id": "run:1:1"}),
    ]


def test_a_tool_ends_the_message_before_it_and_the_next_message_has_its_own_id() -> None:
    done = COMMAND | {"status": "completed", "exitCode": 0, "aggregatedOutput": "a\n"}
    _, events = translated(
        *(said("One"), whole("One"), told("item/started", item=COMMAND), told("item/completed", item=done)),
        *(said("Two", "n"), whole("Two", "n"), ended()),
    )
    assert [kind for kind, _ in events if not kind.endswith("delta")] == [
        *("message.done", "message.stop", "tool.start", "tool.end", "message.done", "message.stop"),
    ]
    assert [data["message_id"] for kind, data in events if kind == "message.stop"] == ["run:1:1", "run:1:2"]
    [start] = [data for kind, data in events if kind == "tool.start"]
    assert (start["name"], start["title"]) == ("bash", "ls")
    [end] = [data for kind, data in events if kind == "tool.end"]
    assert (end["status"], end["output"]) == ("ok", "a")


def test_what_is_open_when_a_turn_is_interrupted_is_closed() -> None:
    translator, events = translated(told("item/started", item=COMMAND), ended("interrupted"))
    assert [data["status"] for kind, data in events if kind == "tool.end"] == ["error"]
    assert not list(translator.closing())


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"type": "fileChange", "changes": [{"path": "a", "kind": {"type": "add"}}]}, "write"),
        ({"type": "fileChange", "changes": [{"path": "a", "kind": {"type": "update"}}]}, "edit"),
        ({"type": "mcpToolCall", "server": "contextbase", "tool": "read"}, "mcp.contextbase.read"),
        ({"type": "webSearch", "query": "news"}, "web"),
    ],
)
def test_tools_have_names_that_all_agents_share(item: dict[str, Any], name: str) -> None:
    _, events = translated(told("item/started", item={"id": "x", **item}))
    assert events[0][1]["name"] == name


def test_a_plan_is_a_list_of_todos() -> None:
    plan = [{"step": "one", "status": "inProgress"}, {"step": "two", "status": "completed"}]
    _, [(kind, data)] = translated(told("turn/plan/updated", plan=plan))
    assert kind == "todo.snapshot"
    assert [(todo["content"], todo["status"]) for todo in data["todos"]] == [("one", "doing"), ("two", "done")]


def test_only_what_this_turn_used_is_counted() -> None:
    used = {"inputTokens": 100, "cachedInputTokens": 40, "outputTokens": 7}
    old = told("thread/tokenUsage/updated", turnId="0", tokenUsage={"last": used})
    now = told("thread/tokenUsage/updated", tokenUsage={"last": used})
    _, events = translated(old, now, now, ended())
    [data] = [data for kind, data in events if kind == "usage"]
    assert (data["input_tokens"], data["cache_read_tokens"], data["output_tokens"]) == (120, 80, 14)


@pytest.mark.parametrize(
    ("info", "message", "code", "is_retryable"),
    [
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "no", "model_denied", False),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "no", "model_unreachable", True),
        ("rateLimitExceeded", "busy", "rate_limited", True),
        ("internalServerError", "later", "model_error", True),
        ("other", '{"error": {"message": "Too much."}}', "model_error", False),
        ("other", "Something broke.", "agent_error", False),
    ],
)
def test_errors_have_codes(info: object, message: str, code: str, is_retryable: bool) -> None:
    translator, _ = translated(ended("failed", codexErrorInfo=info, message=message))
    assert translator.end is not None
    assert translator.end.failure is not None
    assert (translator.end.failure.code, translator.end.failure.is_retryable) == (code, is_retryable)


def test_what_other_threads_say_is_left_out() -> None:
    _, events = translated(said("Mine.") | {"params": {"threadId": "helper", "itemId": "m", "delta": "Not mine."}})
    assert events == []
