"""Events of a run as the chunks that a chat client reads."""

from typing import Any
from uuid import UUID

import pytest
from tests.support.ui_events import flat, placed, streamed

from contextbase.conversation.projection import LARGEST_VALUE, LONGEST_PART
from contextbase.conversation.ui_messages import built_message
from contextbase.conversation.ui_stream import user_message, without_rewound
from contextbase.vocabulary import RunState

_Event = tuple[str, dict[str, object]]


def chunks_of(*events: _Event, state: RunState | None = None) -> list[dict[str, Any]]:
    return flat(streamed(placed([(event, 1) for event in events]), state))[1:]


def parts_of(*events: _Event) -> list[dict[str, Any]]:
    message = built_message(flat(streamed(placed([(event, 1) for event in events]), None)))
    parts: list[dict[str, Any]] = message["parts"]
    return parts


def said(kind: str, text: str, part: int = 0, message_id: str = "m") -> _Event:
    return kind, {"message_id": message_id, "part": part, "text": text}


def test_text_and_thought_are_streamed_and_what_is_done_ends_them() -> None:
    chunks = chunks_of(
        said("reasoning.delta", "Hm.", 0),
        said("reasoning.done", "Hm.", 0),
        said("message.delta", "Hel", 1),
        said("message.done", "Hello", 1),
        ("message.stop", {"message_id": "m"}),
    )
    assert [(chunk["type"], chunk.get("delta")) for chunk in chunks] == [
        ("start-step", None),
        ("reasoning-start", None),
        ("reasoning-delta", "Hm."),
        ("reasoning-end", None),
        ("text-start", None),
        ("text-delta", "Hel"),
        ("text-delta", "lo"),
        ("text-end", None),
    ]


def test_what_is_said_again_after_a_cut_takes_the_place_of_what_was_said() -> None:
    parts = parts_of(
        said("message.delta", "First."),
        ("message.stop", {"message_id": "m"}),
        said("message.delta", "Hal", message_id="n"),
        ("message.restarted", {"message_id": "n"}),
        said("message.delta", "Hello.", message_id="n"),
        said("message.done", "Hello.", message_id="n"),
    )
    assert [part.get("text") for part in parts] == [None, "First.", None, "Hello."]


def test_a_tool_that_ran_is_not_taken_back_with_the_text_beside_it() -> None:
    parts = parts_of(
        said("message.delta", "Hal"),
        ("tool.start", {"tool_id": "t", "name": "bash", "input": {"command": "ls"}}),
        ("message.restarted", {"message_id": "m"}),
        said("message.done", "Hello."),
    )
    assert [(part["type"], part.get("text")) for part in parts[1:]] == [
        ("text", "Hal"),
        ("dynamic-tool", None),
        ("text", "Hello."),
    ]
    assert parts[1]["providerMetadata"] == {"contextbase": {"replaced": True}}


def test_tools_have_canonical_names_titles_and_ends() -> None:
    parts = parts_of(
        ("tool.start", {"tool_id": "t", "name": "mcp.notes.add", "title": "Add", "input": {"x": 1}}),
        ("tool.start", {"tool_id": "u", "name": "bash", "input": {"command": "false"}}),
        ("tool.end", {"tool_id": "u", "status": "error", "output": "1"}),
        ("tool.end", {"tool_id": "t", "status": "ok", "output": {"id": 7}}),
        ("tool.end", {"tool_id": "nobody", "status": "ok"}),
    )
    first, second = parts[1:]
    assert (first["toolName"], first["title"], first["state"], first["output"]) == (
        "mcp.notes.add",
        "Add",
        "output-available",
        {"id": 7},
    )
    assert (second["state"], second["errorText"]) == ("output-error", "1")


def test_a_tool_at_work_is_over_when_the_attempt_is() -> None:
    events: list[_Event] = [("tool.start", {"tool_id": "t", "name": "bash"}), ("run.state", {"state": "queued"})]
    assert parts_of(*events)[1]["state"] == "output-error"


def test_questions_todos_and_states_are_replaced_by_what_comes_later() -> None:
    parts = parts_of(
        ("run.state", {"state": "running", "number": 1}),
        ("human_loop.requested", {"question_id": "q", "kind": "question", "prompt": "Which?", "options": []}),
        ("todo.snapshot", {"todos": [{"todo_id": "1", "content": "Plan", "status": "todo"}]}),
        ("todo.update", {"todo_id": "1", "status": "doing"}),
        ("human_loop.resolved", {"question_id": "q", "outcome": "answered", "answer": {"values": ["a"]}, "by": None}),
        ("run.state", {"state": "waiting_human", "number": 1}),
    )
    assert [part["type"] for part in parts] == ["data-run", "data-question", "data-todos"]
    run, question, todos = (part["data"] for part in parts)
    assert run["state"] == "waiting_human"
    assert (question["state"], question["prompt"], question["answer"]) == ("answered", "Which?", {"values": ["a"]})
    assert "by" not in question
    assert todos["todos"] == [{"todo_id": "1", "content": "Plan", "status": "doing"}]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RunState.SUCCEEDED, [("finish", "stop")]),
        (RunState.CANCELED, [("abort", None), ("finish", "interrupted")]),
        (RunState.FAILED, [("finish", "error"), ("error", None)]),
    ],
)
def test_a_stream_ends_as_its_run_did(state: RunState, expected: list[tuple[str, str | None]]) -> None:
    chunks = chunks_of(said("message.delta", "Hal"), state=state)
    ends = [(chunk["type"], chunk.get("finishReason")) for chunk in chunks if chunk["type"] != "data-landing"]
    assert ends[-len(expected) :] == expected
    assert ("text-end", None) in ends


def test_long_texts_and_values_are_cut_as_they_are_in_rows() -> None:
    long = "x" * (LARGEST_VALUE + 1)
    parts = parts_of(
        said("message.delta", "y" * LONGEST_PART),
        said("message.delta", "z"),
        ("tool.start", {"tool_id": "t", "name": "write", "input": {"content": long}}),
        ("tool.end", {"tool_id": "t", "status": "ok", "output": long}),
    )
    assert len(parts[1]["text"]) == LONGEST_PART
    assert (len(parts[2]["output"]), parts[2]["toolMetadata"]) == (LARGEST_VALUE, {"truncated": True})


def test_a_persons_message_has_its_text_and_its_run() -> None:
    [event] = placed([(("message.user", {"message_id": "prompt", "text": "Hello."}), 0)])
    message = user_message(event)
    assert message["id"] == f"{UUID(int=1)}:prompt"
    assert (message["role"], message["parts"]) == ("user", [{"type": "text", "text": "Hello."}])


def test_what_a_rewind_hides_is_gone_and_a_note_stays() -> None:
    raw: list[_Event] = [
        said("message.delta", "One.", message_id="a"),
        said("message.delta", "Two.", message_id="b"),
        said("message.done", "One.", message_id="a"),
        ("tool.start", {"tool_id": "t", "name": "bash"}),
        ("todo.snapshot", {"todos": [{"todo_id": "x", "content": "one", "status": "todo"}]}),
        ("human_loop.requested", {"question_id": "q", "kind": "question", "prompt": "Which?"}),
        ("human_loop.resolved", {"question_id": "q", "outcome": "canceled"}),
        ("run.state", {"state": "succeeded"}),
        ("session.rewound", {"message_id": "a", "keep": 1, "runs": [], "files": False}),
    ]
    events = without_rewound(placed([(event, 1) for event in raw]))
    parts = built_message(flat(streamed(events, None)))["parts"]
    assert [part["type"] for part in parts] == ["step-start", "text", "data-run", "data-note"]
    assert parts[1]["text"] == "One."
