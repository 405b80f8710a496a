"""Todo lists and questions are a function of the events, in whatever pieces these came."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from contextbase.agent_vocabulary import QuestionStatus, TodoChange, TodoStatus
from contextbase.agents.todo_lists import TodoLists
from contextbase.conversation.model import SessionEvent
from contextbase.conversation.questions import QuestionRows
from contextbase.conversation.rewind_cut import RewindCut
from contextbase.conversation.todos import TodoItem, TodoItemEvent, TodoRows

Raw = list[tuple[tuple[str, dict[str, Any]], UUID]]

_RUNS = [UUID(int=1), UUID(int=2)]
_IDS = st.sampled_from(["a", "b", "c"])
_STATUSES = st.sampled_from([str(status) for status in TodoStatus])
_ITEM = st.fixed_dictionaries(
    {"todo_id": _IDS, "content": st.text(max_size=2), "status": _STATUSES}, optional={"order": st.integers(0, 3)}
)
_REWINDS = st.tuples(
    st.just("session.rewound"),
    st.fixed_dictionaries(
        {
            "runs": st.lists(st.sampled_from([str(run) for run in _RUNS]), unique=True, max_size=2),
            "keep": st.none() | st.integers(0, 30),
        }
    ),
)
_TODO_EVENTS = st.one_of(
    st.tuples(st.just("todo.snapshot"), st.fixed_dictionaries({"todos": st.lists(_ITEM, max_size=4)})),
    st.tuples(st.just("todo.update"), _ITEM),
    st.tuples(st.just("message.stop"), st.just({"message_id": "m"})),
    _REWINDS,
)
_ASKED = {"kind": "question", "prompt": "Which?", "deadline": "2026-01-01T00:00:00+00:00"}
_QUESTION_EVENTS = st.one_of(
    st.tuples(st.just("human_loop.requested"), _IDS.map(lambda name: _ASKED | {"question_id": name})),
    st.tuples(
        st.just("human_loop.resolved"),
        st.fixed_dictionaries(
            {
                "question_id": _IDS,
                "outcome": st.sampled_from(["answered", "expired", "canceled"]),
                "answer": st.just({"values": []}),
                "by": st.just("user:ann"),
            }
        ),
    ),
    st.tuples(st.just("human_loop.delivered"), st.fixed_dictionaries({"question_id": _IDS})),
    st.tuples(
        st.just("human_loop.answered_late"),
        _IDS.map(lambda name: {"question_id": name, "answer": {}, "by": "user:ann", "late_run_id": str(UUID(int=9))}),
    ),
    _REWINDS,
)
_CUTS = st.lists(st.integers(0, 40), max_size=5)


def placed(raw: Raw) -> list[SessionEvent]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        SessionEvent(
            number=number, kind=kind, run_id=run_id, attempt=1, ts=start + timedelta(seconds=number), data=data
        )
        for number, ((kind, data), run_id) in enumerate(raw, start=1)
    ]


def pieces(events: list[SessionEvent], cuts: list[int]) -> list[list[SessionEvent]]:
    borders = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    return [events[start:end] for start, end in pairwise(borders)]


def _place(one: TodoItemEvent) -> tuple[int, str]:
    return one.position, one.todo_id


@given(st.lists(st.tuples(_TODO_EVENTS, st.sampled_from(_RUNS)), max_size=30), _CUTS)
def test_todo_lists_in_pieces_are_what_all_events_give(raw: Raw, cuts: list[int]) -> None:
    """Each piece sees only the rows that the database would be asked for."""
    events, whole = placed(raw), TodoRows()
    whole.apply_all(events)
    items: dict[tuple[UUID, str], TodoItem] = {}
    history: list[TodoItemEvent] = []
    for piece in pieces(events, cuts):
        rewinds = [RewindCut.of(event) for event in piece if event.kind == "session.rewound"]
        runs = {event.run_id for event in piece}.union(*(cut.runs for cut in rewinds))
        part = TodoRows(items={key: one for key, one in items.items() if key[0] in runs})
        part.history += [one for one in history if one.run_id in {cut.run_id for cut in rewinds}]
        part.apply_all(piece)
        history = [one for one in history if one not in part.history and not any(cut.hides(one) for cut in part.cuts)]
        items = {key: one for key, one in items.items() if key not in part.changed}
        items |= {key: part.items[key] for key in part.changed if key in part.items}
        history += part.history
    assert items == whole.items
    assert sorted(history, key=_place) == sorted(whole.history, key=_place)


@given(st.lists(st.tuples(_TODO_EVENTS, st.sampled_from(_RUNS)), max_size=30))
def test_the_history_of_the_items_tells_what_the_lists_are(raw: Raw) -> None:
    rows = TodoRows()
    rows.apply_all(placed(raw))
    last = {(one.run_id, one.todo_id): one for one in rows.history}
    alive = {key: one for key, one in last.items() if one.change is not TodoChange.REMOVED}
    assert {key: (one.content, one.status, one.order) for key, one in alive.items()} == {
        key: (one.content, one.status, one.order) for key, one in rows.items.items()
    }
    names = [(one.run_id, one.position, one.todo_id) for one in rows.history]
    assert len(set(names)) == len(names)


@given(st.lists(st.tuples(_QUESTION_EVENTS, st.sampled_from(_RUNS)), max_size=30), _CUTS)
def test_questions_in_pieces_are_what_all_events_give(raw: Raw, cuts: list[int]) -> None:
    events, whole = placed(raw), QuestionRows()
    whole.apply_all(events)
    questions: dict[str, Any] = {}
    for piece in pieces(events, cuts):
        named = {str(event.data.get("question_id")) for event in piece}
        part = QuestionRows(questions={name: one for name, one in questions.items() if name in named})
        part.apply_all(piece)
        questions = {name: one for name, one in questions.items() if not any(cut.hides(one) for cut in part.cuts)}
        questions |= {name: part.questions[name] for name in part.changed}
    assert questions == whole.questions
    for one in questions.values():
        assert (one.status is QuestionStatus.PENDING) == (one.resolved_at is None)
        assert one.status is QuestionStatus.ANSWERED or one.delivered_at is None


def test_the_first_end_of_a_question_counts() -> None:
    rows, run = QuestionRows(), _RUNS[0]
    ends: Raw = [
        (
            (
                "human_loop.resolved",
                {"question_id": "a", "outcome": outcome, "answer": {"values": []}, "by": "user:ann"},
            ),
            run,
        )
        for outcome in ("expired", "answered", "canceled")
    ]
    rows.apply_all(placed([(("human_loop.requested", _ASKED | {"question_id": "a"}), run), *ends]))
    [question] = rows.questions.values()
    assert (question.status, question.response) == (QuestionStatus.EXPIRED, None)


def test_an_update_changes_its_item_alone_and_a_snapshot_is_the_whole_list() -> None:
    first = {"todo_id": "a", "content": "one", "status": "todo", "order": 1}
    second = {"todo_id": "b", "content": "two", "status": "doing", "order": 2}
    rows, run = TodoRows(), _RUNS[0]
    raw: Raw = [
        (("todo.snapshot", {"todos": [first, second]}), run),
        (("todo.update", {"todo_id": "a", "status": "done"}), run),
        (("todo.snapshot", {"todos": [second]}), run),
    ]
    rows.apply_all(placed(raw[:2]))
    assert [(one.content, one.status) for one in rows.items.values()] == [("one", "done"), ("two", "doing")]
    rows = TodoRows()
    rows.apply_all(placed(raw))
    assert [one.todo_id for one in rows.items.values()] == ["b"]
    assert [(one.todo_id, str(one.change)) for one in rows.history] == [
        ("a", "added"),
        ("b", "added"),
        ("a", "changed"),
        ("a", "removed"),
    ]


_LIST = st.lists(st.sampled_from(["plan", "write", "test", "ship"]), max_size=5)


@given(_LIST, _LIST)
def test_items_of_programs_without_ids_keep_theirs_while_they_keep_their_words(
    before: list[str], after: list[str]
) -> None:
    lists = TodoLists()

    def named(contents: list[str]) -> list[tuple[str, str]]:
        _, data = lists.snapshot([(content, "pending") for content in contents])
        return [(todo["content"], todo["todo_id"]) for todo in data["todos"]]

    first, second = named(before), named(after)
    for found in (first, second):
        assert len({todo_id for _, todo_id in found}) == len(found)
    for word in set(before) & set(after):
        known = [todo_id for content, todo_id in first if content == word]
        again = [todo_id for content, todo_id in second if content == word]
        most = min(len(known), len(again))
        assert known[:most] == again[:most]


def test_an_item_that_is_said_in_other_words_at_its_place_keeps_its_id() -> None:
    lists = TodoLists()
    _, first = lists.snapshot([("Write it", "in_progress"), ("Test it", "pending")])
    _, second = lists.snapshot([("Write it well", "completed"), ("Test it", "inProgress"), ("Ship it", "nonsense")])
    names = [todo["todo_id"] for todo in second["todos"]]
    assert names[:2] == [todo["todo_id"] for todo in first["todos"]]
    assert [todo["status"] for todo in second["todos"]] == ["done", "doing", "todo"]
    _, elsewhere = TodoLists().snapshot([("Ship it", "pending")])  # another turn of the run
    assert elsewhere["todos"][0]["todo_id"] == names[2]
