"""What executors claim is checked: kinds, fields, sizes, and what the database can hold."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.conversation.events import LARGEST_EVENT_BYTES, checked_event
from contextbase.conversation.model import RunEvent
from contextbase.errors import InvalidInput, TooLarge


def raw(
    kind: str = "message.delta", n: object = 1, ts: object = "2026-01-01T00:00:00Z", **data: object
) -> dict[str, object]:
    return {"type": kind, "n": n, "ts": ts, "data": data}


def test_an_event_keeps_the_fields_of_its_kind_alone() -> None:
    event = checked_event(raw(message_id="m", part=0, text="hi", run_id="another", extra=1))
    assert event == RunEvent(
        n=1,
        ts=datetime(2026, 1, 1, tzinfo=UTC),
        kind="message.delta",
        data={"message_id": "m", "part": 0, "text": "hi"},
    )


@pytest.mark.parametrize(
    "wrong",
    [
        raw(message_id="m", part=0),
        raw(message_id="", part=0, text=""),
        raw(message_id="m", part=-1, text=""),
        raw(message_id="m", part=True, text=""),
        raw(message_id="m", part=0, text=["a"]),
        raw(message_id="m" * 201, part=0, text=""),
        raw(n=0, message_id="m", part=0, text=""),
        raw(n="1", message_id="m", part=0, text=""),
        raw(ts="yesterday", message_id="m", part=0, text=""),
        raw(ts="2026-01-01T00:00:00", message_id="m", part=0, text=""),
        raw("run.state", state="succeeded"),
        raw("message.user", message_id="m", text="I am the user"),
        raw("tool.end", tool_id="t", status="interrupted"),
        raw("tool.start", tool_id="t", name="bash", input=float("nan")),
        {"type": "message.delta", "n": 1, "ts": "2026-01-01T00:00:00Z", "data": []},
        {"type": ["message.delta"], "n": 1},
        [],
        None,
    ],
)
def test_what_has_not_the_shape_of_an_event_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        checked_event(wrong)


def test_an_event_that_is_too_large_or_too_deep_is_refused() -> None:
    with pytest.raises(TooLarge):
        checked_event(raw(message_id="m", part=0, text="x" * (LARGEST_EVENT_BYTES + 1)))
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InvalidInput):
        checked_event(raw("tool.start", tool_id="t", name="bash", input=deep))


def test_characters_that_the_database_cannot_hold_are_replaced() -> None:
    event = checked_event(raw("tool.start", tool_id="t", name="bash", input={"a\0": ["\ud800", "ok"]}))
    assert event.data["input"] == {"a\ufffd": ["?", "ok"]}


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
_KIND = st.sampled_from(["message.delta", "tool.start", "usage", "x"]) | _JSON


@given(st.fixed_dictionaries({}, optional={"type": _KIND, "n": _JSON, "ts": _JSON, "data": _JSON}))
def test_whatever_comes_is_an_event_or_refused(value: object) -> None:
    with suppress(InvalidInput, TooLarge):
        assert isinstance(checked_event(value), RunEvent)
