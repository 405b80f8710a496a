"""A run's message is a function of its events: streamed, cut and resumed, or asked for as history."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.ui_events import RUN, RawEvents, flat, placed, streamed

from contextbase.conversation.ui_messages import built_message
from contextbase.conversation.ui_stream import joined
from contextbase.vocabulary import RunState

_IDS = st.sampled_from(["a", "b"])
_TEXT = st.text("xyz", max_size=4)
_DATA = st.one_of(
    st.tuples(
        st.sampled_from(["message.delta", "message.done", "reasoning.delta", "reasoning.done"]),
        st.fixed_dictionaries({"message_id": _IDS, "part": st.integers(0, 1), "text": _TEXT}),
    ),
    st.tuples(st.sampled_from(["message.stop", "message.restarted"]), st.fixed_dictionaries({"message_id": _IDS})),
    st.tuples(
        st.just("tool.start"),
        st.fixed_dictionaries({"tool_id": _IDS, "name": st.just("bash"), "title": _TEXT, "input": st.just({"x": 1})}),
    ),
    st.tuples(
        st.just("tool.end"),
        st.fixed_dictionaries({"tool_id": _IDS, "status": st.sampled_from(["ok", "error"]), "output": _TEXT}),
    ),
    st.tuples(st.just("run.state"), st.fixed_dictionaries({"state": st.sampled_from(["running", "queued"])})),
    st.tuples(st.just("run.finished"), st.just({"outcome": "completed"})),
    st.tuples(st.just("todo.snapshot"), st.just({"todos": [{"todo_id": "1", "content": "c", "status": "todo"}]})),
    st.tuples(st.just("todo.update"), st.just({"todo_id": "1", "status": "done"})),
    st.tuples(st.just("human_loop.requested"), st.just({"question_id": "q", "kind": "question", "prompt": "?"})),
    st.tuples(st.just("human_loop.resolved"), st.just({"question_id": "q", "outcome": "expired"})),
    st.tuples(st.just("rate_limited"), st.just({"retry_after": 1})),
    st.tuples(st.just("nobody.knows"), st.just({"what": "this is"})),
)
_EVENTS = st.lists(st.tuples(_DATA, st.integers(1, 2)), max_size=40)


@given(_EVENTS, st.integers(0, 40))
def test_what_is_over_sent_whole_gives_the_message_that_was_streamed(raw: RawEvents, cut: int) -> None:
    """A client that comes back gets the beginning joined, and the rest as it comes."""
    sent = streamed(placed(raw))
    again = [*joined(flat(sent[:cut])), *flat(sent[cut:])]
    assert built_message(again) == built_message(flat(sent))


@given(_EVENTS)
def test_every_chunk_is_about_what_was_begun(raw: RawEvents) -> None:
    """The SDK's reducer throws for a delta without a start, and for the output of an unknown tool."""
    chunks = flat(streamed(placed(raw)))
    open_parts: set[tuple[str, str]] = set()
    tools: set[str] = set()
    for chunk in chunks:
        kind, _, what = chunk["type"].partition("-")
        if kind in ("text", "reasoning"):
            key = (kind, chunk["id"])
            assert (key in open_parts) is (what != "start")
            (open_parts.add if what == "start" else open_parts.discard if what == "end" else _keep)(key)
        elif chunk["type"] == "tool-input-available":
            assert chunk["toolCallId"] not in tools
            tools.add(chunk["toolCallId"])
        elif kind == "tool":
            assert chunk["toolCallId"] in tools
        elif chunk["type"] == "reset-step":
            open_parts.clear()
    assert not open_parts
    assert not any(value is None for chunk in chunks for value in chunk.values())


def _keep(_: Any) -> None: ...


@given(_EVENTS, st.sampled_from([RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED]))
def test_nothing_of_a_message_is_open_when_its_run_has_ended(raw: RawEvents, state: RunState) -> None:
    message = built_message(flat(streamed(placed(raw), state)))
    states = [part["state"] for part in message["parts"] if "state" in part]
    assert set(states) <= {"done", "output-available", "output-error"}
    assert (message["id"], message["metadata"]["cost"]) == (str(RUN), 0.5)
    assert message["parts"][-1]["type"] == "data-landing"
