"""Messages and tool executions are a function of the events, in whatever pieces these came."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from contextbase.conversation import projection as projections
from contextbase.conversation.model import SessionEvent
from contextbase.conversation.projection import Projection, replay
from contextbase.vocabulary import MessagePartKind, MessageState, ToolStatus

_RUNS = [UUID(int=1), UUID(int=2)]
_IDS = st.sampled_from(["a", "b"])
_TEXT = st.text(max_size=4)

_DATA = st.one_of(
    st.tuples(
        st.sampled_from(["message.delta", "message.done", "reasoning.delta", "reasoning.done"]),
        st.fixed_dictionaries({"message_id": _IDS, "part": st.integers(0, 2), "text": _TEXT}),
    ),
    st.tuples(
        st.sampled_from(["message.stop", "message.restarted"]),
        st.fixed_dictionaries({"message_id": _IDS}),
    ),
    st.tuples(st.just("message.user"), st.fixed_dictionaries({"message_id": st.just("prompt"), "text": _TEXT})),
    st.tuples(
        st.just("tool.start"),
        st.fixed_dictionaries({"tool_id": _IDS, "name": st.just("bash"), "input": st.dictionaries(_TEXT, _TEXT)}),
    ),
    st.tuples(
        st.just("tool.end"),
        st.fixed_dictionaries({"tool_id": _IDS, "status": st.sampled_from(["ok", "error"]), "output": _TEXT}),
    ),
    st.tuples(st.just("run.finished"), st.just({"outcome": "completed"})),
    st.tuples(st.just("run.state"), st.fixed_dictionaries({"state": st.sampled_from(["running", "queued", "failed"])})),
    st.tuples(st.just("usage"), st.just({"model": "m"})),
    st.tuples(
        st.just("session.rewound"),
        st.fixed_dictionaries(
            {
                "runs": st.lists(st.sampled_from([str(run) for run in _RUNS]), unique=True, max_size=2),
                "keep": st.none() | st.integers(0, 40),
            }
        ),
    ),
)
_EVENTS = st.lists(st.tuples(_DATA, st.sampled_from(_RUNS), st.integers(1, 2)), max_size=40)


def placed(raw: list[tuple[tuple[str, dict[str, object]], UUID, int]]) -> list[SessionEvent]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        SessionEvent(
            number=number, kind=kind, run_id=run_id, attempt=attempt, ts=start + timedelta(seconds=number), data=data
        )
        for number, ((kind, data), run_id, attempt) in enumerate(raw, start=1)
    ]


@given(_EVENTS, st.lists(st.integers(0, 40), max_size=5))
def test_events_in_pieces_give_the_rows_that_all_of_them_give(
    raw: list[tuple[tuple[str, dict[str, object]], UUID, int]], cuts: list[int]
) -> None:
    """Each piece sees only the rows that the database would be asked for."""
    events = placed(raw)
    whole = replay(events)
    messages, tools = dict[Any, Any](), dict[Any, Any]()
    borders = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for start, end in pairwise(borders):
        piece = events[start:end]
        runs = {event.run_id for event in piece}
        named = {event.data.get("message_id") for event in piece}
        used = {event.data.get("tool_id") for event in piece}
        is_ending = any(event.kind in projections.ENDS_OF_ATTEMPTS for event in piece)
        part = Projection(
            messages={
                key: one
                for key, one in messages.items()
                if (is_ending or named != {None})
                and one.run_id in runs
                and (one.state is MessageState.STREAMING or one.message_id in named)
            },
            tools={
                key: one
                for key, one in tools.items()
                if (is_ending or used != {None})
                and one.run_id in runs
                and (one.status is ToolStatus.RUNNING or one.tool_id in used)
            },
        )
        for event in piece:
            part.apply(event)
        for cut in part.cuts:
            messages = {key: one for key, one in messages.items() if not cut.hides(one)}
            tools = {key: one for key, one in tools.items() if not cut.hides(one)}
        messages |= {key: part.messages[key] for key in part.changed_messages}
        tools |= {key: part.tools[key] for key in part.changed_tools}
    assert messages == whole.messages
    assert tools == whole.tools


@given(_EVENTS)
def test_nothing_is_left_open_when_its_run_ended(raw: list[tuple[tuple[str, dict[str, object]], UUID, int]]) -> None:
    ends: list[tuple[tuple[str, dict[str, object]], UUID, int]] = [
        (("run.state", {"state": "failed"}), run_id, 1) for run_id in _RUNS
    ]
    rows = replay(placed(raw + ends))
    assert all(one.state is MessageState.DONE for one in rows.messages.values())
    assert all(one.status is not ToolStatus.RUNNING and one.ended_at for one in rows.tools.values())


def test_deltas_are_folded_into_one_part_that_the_whole_text_replaces() -> None:
    run = _RUNS[0]
    part: dict[str, object] = {"message_id": "m", "part": 0}
    said: list[tuple[tuple[str, dict[str, object]], UUID, int]] = [
        (("message.delta", part | {"text": "Hel"}), run, 1),
        (("message.delta", part | {"text": "lo"}), run, 1),
    ]
    [message] = replay(placed(said)).messages.values()
    assert [(one.text, one.done) for one in message.parts] == [("Hello", False)]
    done: list[tuple[tuple[str, dict[str, object]], UUID, int]] = [
        (("message.done", part | {"text": "Hello!"}), run, 1),
        (("message.delta", part | {"text": "late"}), run, 1),
        (("message.stop", {"message_id": "m"}), run, 1),
    ]
    [message] = replay(placed(said + done)).messages.values()
    assert [(one.kind, one.text, one.done) for one in message.parts] == [(MessagePartKind.TEXT, "Hello!", True)]
    assert (message.state, message.text, message.position) == (MessageState.DONE, "Hello!", 1)


def test_long_values_are_cut_in_the_row() -> None:
    run = _RUNS[0]
    long = "x" * (projections.LARGEST_VALUE + 1)
    events: list[tuple[tuple[str, dict[str, object]], UUID, int]] = [
        (("tool.start", {"tool_id": "t", "name": "write", "input": {"content": long}}), run, 1),
        (("tool.end", {"tool_id": "t", "status": "ok", "output": long}), run, 1),
    ]
    [tool] = replay(placed(events)).tools.values()
    assert tool.truncated
    assert len(str(tool.input["value"])) == len(str(tool.output)) == projections.LARGEST_VALUE
