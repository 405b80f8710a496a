"""The version rule takes a side as it is, never the lower one, and whichever way the sides are called; a requirement
is put together of some side's alternatives."""

import re

from hypothesis import given
from hypothesis import strategies as st

from contextbase.merge.requirements import settle_requirement
from contextbase.merge.versions import find_versions, higher, substantial

numbers = st.lists(st.integers(0, 30), min_size=2, max_size=4).map(lambda parts: ".".join(map(str, parts)))
suffixes = st.sampled_from(["", "-rc.1", "-rc.2", "-alpha", "b1", ".dev0", "+build.5"])
prefixes = st.sampled_from(["", "v", "^", ">=", "name@", "name==", '"'])
versions = st.builds("{}{}{}".format, prefixes, numbers, suffixes)
texts = st.one_of(versions, st.text(max_size=12), st.builds("{}, {}".format, versions, versions))


@given(base=st.none() | texts, ours=texts, theirs=texts)
def test_the_rule_answers_with_one_of_the_sides_whichever_comes_first(base: str | None, ours: str, theirs: str) -> None:
    answer = higher(base, ours, theirs)
    assert answer in (None, ours, theirs)
    assert higher(base, theirs, ours) == answer


@given(base=versions, ours=versions, theirs=versions)
def test_the_answer_is_nowhere_lower_than_any_side(base: str, ours: str, theirs: str) -> None:
    answer = higher(base, ours, theirs)
    if answer is not None:
        for side in (base, ours, theirs):
            assert find_versions(answer).versions >= find_versions(side).versions


@given(base=texts, ours=texts, theirs=texts)
def test_a_change_that_is_more_than_a_bump_is_found_on_either_side(base: str, ours: str, theirs: str) -> None:
    answer = substantial(base, ours, theirs)
    assert answer in (None, ours, theirs)
    assert substantial(base, theirs, ours) == answer


@given(text=st.text(max_size=60))
def test_the_text_around_versions_is_kept_in_order(text: str) -> None:
    around, found = find_versions(text)
    assert len(around) == len(found) + 1
    at = 0
    for piece in around:
        at = text.index(piece, at) + len(piece)


alternatives = st.lists(versions | st.sampled_from(["dev-main", "*"]), min_size=1, max_size=3).map(" || ".join)


@given(base=alternatives, ours=alternatives, theirs=alternatives)
def test_a_requirement_is_settled_alike_whichever_side_comes_first_and_of_nothing_but_their_alternatives(
    base: str, ours: str, theirs: str
) -> None:
    answer = settle_requirement(base, ours, theirs)
    swapped = settle_requirement(base, theirs, ours)
    assert (answer is None) == (swapped is None)
    if answer is not None and swapped is not None:
        parts = {side: set(re.split(r" \|\| ", side)) for side in (base, ours, theirs, answer, swapped)}
        assert parts[answer] == parts[swapped] <= parts[ours] | parts[theirs]
