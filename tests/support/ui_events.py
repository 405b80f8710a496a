"""Events of one run as a chat client is sent them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st

from contextbase.conversation.model import SessionEvent
from contextbase.conversation.ui_stream import Chunk, RunOutcome, RunStream
from contextbase.vocabulary import RunState

__all__ = ["RUN", "RUN_EVENTS", "RawEvents", "flat", "placed", "streamed"]

RUN = UUID(int=1)
RawEvents = list[tuple[tuple[str, dict[str, object]], int]]  # kind, data and attempt of each

_AT = datetime(2026, 1, 1, tzinfo=UTC)

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
RUN_EVENTS = st.lists(st.tuples(_DATA, st.integers(1, 2)), max_size=40)


def placed(raw: RawEvents) -> list[SessionEvent]:
    return [
        SessionEvent(
            number=number, kind=kind, run_id=RUN, attempt=attempt, ts=_AT + timedelta(seconds=number), data=data
        )
        for number, ((kind, data), attempt) in enumerate(raw, start=1)
    ]


def streamed(events: list[SessionEvent], state: RunState | None = RunState.SUCCEEDED) -> list[list[Chunk]]:
    """What each event is sent as. `state`: None while the run works."""
    stream = RunStream(RUN)
    sent = [stream.start(created_at=_AT, provider="scripted", model=None)]
    sent += [stream.chunks(event) for event in events]
    if state is not None:
        outcome = RunOutcome(state=state, message="Why.", landed={"state": "nothing"}, metadata={"cost": 0.5})
        sent.append(stream.end(outcome))
    return sent


def flat(sent: list[list[Chunk]]) -> list[Chunk]:
    return [chunk for chunks in sent for chunk in chunks]
