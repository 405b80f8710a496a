import json
from typing import Any

from contextbase.merge import MergeOutcome, merge


def merged(base: object, ours: object, theirs: object) -> Any:
    texts = [json.dumps(side, indent=2).encode() for side in (base, ours, theirs)]
    answer = merge(*texts, path="state.crdt.json")
    assert answer.outcome is MergeOutcome.MERGED
    assert answer.content is not None
    return json.loads(answer.content)


def test_additions_of_both_sides_are_kept_once() -> None:
    assert merged(["a"], ["a", "b", "x"], ["a", "c", "x"]) == ["a", "b", "c", "x"]


def test_a_removal_holds_unless_the_other_side_changed_what_was_removed() -> None:
    base = {"gone": 1, "kept": 1}
    assert merged(base, {}, {"gone": 1, "kept": 2}) == {"kept": 2}


def test_elements_with_an_id_merge_member_by_member() -> None:
    base = [{"id": 1, "done": False, "by": None}]
    ours, theirs = [{"id": 1, "done": True, "by": None}], [{"id": 1, "done": False, "by": "ann"}]
    assert merged(base, ours, theirs) == [{"id": 1, "done": True, "by": "ann"}]


def test_counters_add_up_even_when_both_sides_count_the_same() -> None:
    def counted(number: float, log: str) -> object:
        return {"visits": {"$counter": number}, "log": [log]}

    assert merged(counted(10, "x"), counted(12, "y"), counted(11, "z"))["visits"] == {"$counter": 13}
    assert merged(counted(10, "x"), counted(11, "y"), counted(11, "z"))["visits"] == {"$counter": 12}
    assert merged(counted(0.1, "x"), counted(0.3, "y"), counted(0.2, "z"))["visits"] == {"$counter": 0.4}


def test_any_other_value_is_the_last_writers_and_the_head_is_handed_over() -> None:
    texts = [json.dumps({"title": title, "n": n}).encode() for title, n in (("a", 1), ("b", 1), ("c", 2))]
    answer = merge(*texts, path="state.crdt.json")
    assert answer.content == texts[2]
    assert answer.other == texts[1]
    assert "/title" in answer.notes[0]


def test_what_is_not_json_is_the_last_writers_as_a_whole() -> None:
    answer = merge(b"{}", b"{oops", b'{"a": 1}', path="state.crdt.json")
    assert (answer.content, answer.other) == (b'{"a": 1}', b"{oops")


def test_two_files_made_apart_become_one() -> None:
    answer = merge(None, b'{"a": [1]}', b'{"a": [2], "b": 1}', path="state.crdt.json")
    assert answer.content is not None
    assert json.loads(answer.content) == {"a": [1, 2], "b": 1}
