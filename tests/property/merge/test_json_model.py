"""JSON merges against a naive merge of the parsed values, and against the laws of nothing lost and nothing invented."""

import copy
import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from contextbase.merge import Merged, MergeOutcome, merge
from contextbase.merge.budget import Budget
from contextbase.merge.formats.json import JsonFormat
from contextbase.merge.structure import merge_structured
from contextbase.merge.texts import Texts

MISSING = object()

keys = st.sampled_from(["a", "b", "c", "d", "e/f", "g~h", 'q"uote', "ü", "emoji 🙂"])
scalars = st.sampled_from([None, True, False, 0, 1, -1, 1.5, "", "x", "y", "delete", "null", 10**30])
values = st.recursive(scalars, lambda inner: st.dictionaries(keys, inner, max_size=4), max_leaves=10)
objects = st.dictionaries(keys, values, max_size=5)
layouts = st.sampled_from([{"indent": 2}, {"indent": None}, {"indent": 1, "separators": (",", " : ")}])


@st.composite
def edited(draw: st.DrawFn, base: dict[str, Any]) -> dict[str, Any]:
    """The object with a few members added, changed or removed, at any depth."""
    side = copy.deepcopy(base)
    for _ in range(draw(st.integers(0, 3))):
        place = side
        while inner := [value for value in place.values() if isinstance(value, dict)]:
            if not draw(st.booleans()):
                break
            place = draw(st.sampled_from(inner))
        key = draw(keys)
        if key in place and draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(values)
    return side


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    base = draw(objects)
    return base, draw(edited(base)), draw(edited(base))


def model(base: Any, ours: Any, theirs: Any, path: str, contested: set[str]) -> Any:
    """What a merge by keys means, in the fewest words; ours where it is contested."""
    if same(ours, theirs) or same(theirs, base):
        return ours
    if same(ours, base):
        return theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        was = base if isinstance(base, dict) else {}
        merged = {
            key: model(
                was.get(key, MISSING),
                ours.get(key, MISSING),
                theirs.get(key, MISSING),
                f"{path}/{key.replace('~', '~0').replace('/', '~1')}",
                contested,
            )
            for key in {**ours, **theirs}
        }
        return {key: value for key, value in merged.items() if value is not MISSING}
    contested.add(path)
    return ours


def same(one: Any, other: Any) -> bool:
    """Equality that tells true from 1 and missing from null."""
    if one is MISSING or other is MISSING:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(cases(), st.tuples(layouts, layouts, layouts))
def test_the_structured_merge_does_what_a_naive_merge_by_keys_does(
    case: tuple[Any, Any, Any], layout: tuple[dict[str, Any], ...]
) -> None:
    texts = [json.dumps(value, ensure_ascii=False, **how).encode() for value, how in zip(case, layout, strict=True)]
    assume(len(set(texts)) == 3)
    contested: set[str] = set()
    expected = model(*case, "", contested)
    merged = merge_structured(Texts.read(*texts), JsonFormat(with_comments=False), Budget(10))
    result = merged.partial if merged.outcome is MergeOutcome.CONFLICT else merged.content
    assert result is not None
    assert same(json.loads(result), expected)
    assert {conflict.place.at for conflict in merged.conflicts} == contested


@given(cases(), layouts)
def test_merge_agrees_with_the_model_wherever_git_conflicts_or_not(
    case: tuple[Any, Any, Any], layout: dict[str, Any]
) -> None:
    base, ours, theirs = (json.dumps(value, **layout).encode() for value in case)
    contested: set[str] = set()
    expected = model(*case, "", contested)
    merged = merge(base, ours, theirs, path="a.json")
    if not contested:
        assert merged.content is not None
        assert same(json.loads(merged.content), expected)
    elif merged.content is not None:
        assert merged.strategy == "lines", "only git's own verdict may settle what the model contests"


elements = st.one_of(st.integers(0, 9), st.sampled_from(["x", "y", "z", [1], {"id": 1}, {"id": 2}]))
arrays = st.lists(elements, max_size=6)
sets = st.lists(elements, max_size=6, unique_by=json.dumps)


@given(sets, sets, sets)
def test_elements_of_a_merged_array_come_from_a_side_and_none_that_both_have_is_lost(
    base: list[Any], ours: list[Any], theirs: list[Any]
) -> None:
    texts = [json.dumps({"list": value}, indent=2).encode() for value in (base, ours, theirs)]
    merged = merge(*texts, path="a.json")
    if merged.content is None:
        return
    result = json.loads(merged.content)["list"]
    known = {json.dumps(element) for side in (base, ours, theirs) for element in side}
    assert {json.dumps(element) for element in result} <= known
    for element in result:
        assert element in ours or element in theirs
    for element in ours:
        if element in theirs and element in base:
            assert element in result


@given(arrays, arrays, arrays)
def test_swapping_the_sides_of_an_array_changes_at_most_the_order(
    base: list[Any], ours: list[Any], theirs: list[Any]
) -> None:
    texts = [json.dumps(value, indent=2).encode() for value in (base, ours, theirs)]
    merged, swapped = merge(*texts, path="a.json"), merge(texts[0], texts[2], texts[1], path="a.json")
    assert _elements(merged) == _elements(swapped)


def _elements(merged: Merged) -> list[str] | None:
    return None if merged.content is None else sorted(json.dumps(value) for value in json.loads(merged.content))


@given(
    st.lists(st.integers(1, 6), unique=True, max_size=5),
    st.lists(st.integers(1, 6), unique=True, max_size=5),
    st.lists(st.integers(1, 6), unique=True, max_size=5),
    st.data(),
)
def test_elements_with_an_identity_merge_member_by_member(
    base: list[int], ours: list[int], theirs: list[int], data: st.DataObject
) -> None:
    def records(ids: list[int]) -> dict[int, dict[str, int]]:
        return {number: {"id": number, "n": data.draw(st.integers(0, 1))} for number in ids}

    sides = records(base), records(ours), records(theirs)
    texts = [json.dumps(list(side.values()), indent=1).encode() for side in sides]
    assume(len(set(texts)) == 3)
    contested: set[str] = set()
    base_record, our_record, their_record = ({str(key): value for key, value in side.items()} for side in sides)
    expected = model(base_record, our_record, their_record, "", contested)
    merged = merge_structured(Texts.read(*texts), JsonFormat(with_comments=False), Budget(10))
    result = merged.partial if merged.outcome is MergeOutcome.CONFLICT else merged.content
    assert result is not None
    assert {str(record["id"]): record for record in json.loads(result)} == expected
    assert len(merged.conflicts) == len(contested)
