"""A run's message is a function of its events: streamed, cut and resumed, or asked for as history."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.ui_events import RUN, RUN_EVENTS, RawEvents, flat, placed, streamed

from contextbase.conversation.ui_messages import built_message
from contextbase.conversation.ui_stream import joined
from contextbase.vocabulary import RunState


@given(RUN_EVENTS, st.integers(0, 40))
def test_what_is_over_sent_whole_gives_the_message_that_was_streamed(raw: RawEvents, cut: int) -> None:
    """A client that comes back gets the beginning joined, and the rest as it comes."""
    sent = streamed(placed(raw))
    again = [*joined(flat(sent[:cut])), *flat(sent[cut:])]
    assert built_message(again) == built_message(flat(sent))


@given(RUN_EVENTS)
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


@given(RUN_EVENTS, st.sampled_from([RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED]))
def test_nothing_of_a_message_is_open_when_its_run_has_ended(raw: RawEvents, state: RunState) -> None:
    message = built_message(flat(streamed(placed(raw), state)))
    states = [part["state"] for part in message["parts"] if "state" in part]
    assert set(states) <= {"done", "output-available", "output-error"}
    assert (message["id"], message["metadata"]["cost"]) == (str(RUN), 0.5)
    assert message["parts"][-1]["type"] == "data-landing"
