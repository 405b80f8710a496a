import json

import pytest

from contextbase.merge import MergeOutcome, merge


def merged(base: str, ours: str, theirs: str, path: str = "a.json") -> str:
    answer = merge(base.encode(), ours.encode(), theirs.encode(), path=path)
    assert answer.content is not None, answer.conflicts
    return answer.content.decode()


def test_formatting_key_order_and_the_spelling_of_numbers_stay() -> None:
    base = '{ "z": 1.50, "a" :[ 1,2 ],\n\t"e": 1e400 }'
    ours = '{ "z": 1.50, "a" :[ 1,2 ],\n\t"e": 1e400, "n": 123456789012345678901 }'
    theirs = '{ "z": 2.50, "a" :[ 1,2 ],\n\t"e": 1e400 }'
    assert merged(base, ours, theirs) == ours.replace("1.50", "2.50")


def test_comments_and_trailing_commas_stay_with_what_they_belong_to() -> None:
    base = '{\n  // one\n  "a": 1, // first\n  "b": 2,\n}\n'
    ours = '{\n  // one\n  "a": 1, // first\n  "b": 2,\n  /* mine */\n  "c": 3, // third\n}\n'
    theirs = '{\n  // one\n  "a": 1, // first\n  "b": 2,\n  // yours\n  "d": 4,\n}\n'
    assert merged(base, ours, theirs, path="settings.jsonc") == (
        '{\n  // one\n  "a": 1, // first\n  "b": 2,\n  /* mine */\n  "c": 3, // third\n  // yours\n  "d": 4,\n}\n'
    )


def test_sorted_keys_stay_sorted_and_others_follow_their_neighbour() -> None:
    assert merged(
        '{"a": 1, "d": 1, "x": 1}', '{"a": 1, "d": 1, "m": 1, "x": 1}', '{"a": 1, "d": 1, "e": 1, "x": 1}'
    ) == ('{"a": 1, "d": 1, "e": 1, "m": 1, "x": 1}')
    assert merged('{"z": 1, "d": 1}', '{"z": 1, "n": 1, "d": 1}', '{"z": 1, "d": 1, "b": 1}') == (
        '{"z": 1, "n": 1, "d": 1, "b": 1}'
    )


def test_a_side_that_moved_keys_decides_their_order() -> None:
    assert merged('{"a": 1, "b": 1, "c": 1}', '{"a": 2, "b": 1, "c": 1}', '{"c": 1, "a": 1, "b": 1}') == (
        '{"c": 1, "a": 2, "b": 1}'
    )


def test_an_element_both_sides_add_at_different_spots_stands_once() -> None:
    assert json.loads(merged('["a", "b"]', '["x", "a", "b"]', '["a", "b", "x", "y"]')) == ["x", "a", "b", "y"]


def test_elements_are_matched_by_their_identity_wherever_they_stand() -> None:
    base = '[{"id": 1, "n": 1}, {"id": 2, "n": 1}]'
    ours = '[{"id": 2, "n": 1}, {"id": 1, "n": 5}]'
    theirs = '[{"id": 1, "n": 1}, {"id": 2, "n": 7}]'
    assert json.loads(merged(base, ours, theirs)) == [{"id": 2, "n": 7}, {"id": 1, "n": 5}]


def test_true_is_not_one_and_a_string_is_not_a_number() -> None:
    answer = merge(b'{"a": 0}', b'{"a": 1}', b'{"a": true}', path="a.json")
    assert answer.outcome is MergeOutcome.CONFLICT
    answer = merge(b'{"a": 0}', b'{"a": 1}', b'{"a": "1"}', path="a.json")
    assert answer.outcome is MergeOutcome.CONFLICT


def test_lines_of_a_long_string_are_merged_by_line() -> None:
    assert merged('{"s": "a\\nb\\nc"}', '{"s": "A\\nb\\nc"}', '{"s": "a\\nb\\nC"}') == '{"s": "A\\nb\\nC"}'


def test_of_two_raised_versions_the_higher_is_taken_and_of_two_words_none() -> None:
    assert merged('{"v": "^1.0.0"}', '{"v": "^1.2.0"}', '{"v": "^1.10.0"}') == '{"v": "^1.10.0"}'
    answer = merge(b'{"v": "run a b"}', b'{"v": "run x b"}', b'{"v": "run a y"}', path="a.json")
    assert answer.outcome is MergeOutcome.CONFLICT
    assert answer.conflicts[0].suggestion == b'"run x y"'


@pytest.mark.parametrize("path", ["a.jsonl", "a.ndjson"])
def test_records_of_json_lines_are_merged_by_id(path: str) -> None:
    base = '{"id": 1, "n": 1}\n'
    ours = '{"id": 1, "n": 2}\n{"id": 2}\n'
    theirs = '{"id": 1, "n": 1, "m": 1}\n{"id": 3}\n'
    assert merged(base, ours, theirs, path) == '{"id": 1, "n": 2, "m": 1}\n{"id": 2}\n{"id": 3}\n'


def notebook(source: list[str], count: int | None, outputs: list[object]) -> bytes:
    cell = {"id": "a1", "cell_type": "code", "source": source, "execution_count": count, "outputs": outputs}
    return json.dumps({"cells": [cell], "nbformat": 4}, indent=1).encode()


def test_cells_of_a_notebook_merge_their_source_and_take_the_last_outputs() -> None:
    base = notebook(["a\n", "b\n", "c"], 1, [])
    ours = notebook(["A\n", "b\n", "c"], 2, [{"text": "ours"}])
    theirs = notebook(["a\n", "b\n", "C"], 3, [{"text": "theirs"}])
    answer = merge(base, ours, theirs, path="n.ipynb")
    assert answer.content == notebook(["A\n", "b\n", "C"], 3, [{"text": "theirs"}])


def test_a_line_of_a_cell_both_sides_changed_is_a_conflict_named_by_the_cell() -> None:
    sides = [notebook([line], 1, []) for line in ("x = 1", "x = 2", "x = 3")]
    (conflict,) = merge(*sides, path="n.ipynb").conflicts
    assert (conflict.place.kind, conflict.place.at) == ("cell", "a1/source/0")


DEPENDENCIES = '{\n  "dependencies": {\n    "a": "^1.0.0",\n    "b": "^2.0.0"\n  }\n}\n'


def test_what_one_side_deleted_is_gone_if_the_other_only_raised_its_version() -> None:
    ours = DEPENDENCIES.replace('    "a": "^1.0.0",\n', "")
    for theirs in (DEPENDENCIES.replace("^1.0.0", "^1.1.0"), DEPENDENCIES.replace("^1.0.0", "^1.1.0-rc.1")):
        assert merged(DEPENDENCIES, ours, theirs) == merged(DEPENDENCIES, theirs, ours) == ours


@pytest.mark.parametrize("changed", ["^0.9.0", "~1.1.0", "latest"])
def test_what_one_side_deleted_is_contested_if_the_other_changed_it_otherwise(changed: str) -> None:
    ours, theirs = DEPENDENCIES.replace('    "a": "^1.0.0",\n', ""), DEPENDENCIES.replace("^1.0.0", changed)
    answer = merge(DEPENDENCIES.encode(), ours.encode(), theirs.encode(), path="package.json")
    assert [conflict.place.at for conflict in answer.conflicts] == ["/dependencies/a"]


@pytest.mark.parametrize("added", ["", '  "c": 3,\n'], ids=["alone", "beside a member that both added"])
@pytest.mark.parametrize("swapped", [False, True])
def test_what_one_side_deleted_is_contested_beside_a_member_that_both_changed_alike(added: str, swapped: bool) -> None:
    base = '{\n  "a": 1,\n  "b": 1,\n  "z": 1\n}\n'
    deletes = base.replace('"a": 1', '"a": 2').replace('  "b": 1,\n', added)
    changes = base.replace('"a": 1', '"a": 2').replace('  "b": 1,\n', '  "b": 2,\n' + added)
    sides = (changes, deletes) if swapped else (deletes, changes)
    answer = merge(base.encode(), *(side.encode() for side in sides), path="a.json")
    assert [(conflict.place.at, conflict.reason) for conflict in answer.conflicts] == [("/b", "deleted-and-changed")]


def test_what_one_side_may_have_replaced_is_contested_although_the_other_only_raised_its_version() -> None:
    ours, theirs = DEPENDENCIES.replace('"a": "^1.0.0"', '"c": "^1.0.0"'), DEPENDENCIES.replace("^1.0.0", "^1.1.0")
    answer = merge(DEPENDENCIES.encode(), ours.encode(), theirs.encode(), path="package.json")
    assert [conflict.place.at for conflict in answer.conflicts] == ["/dependencies/a"]


LOCKSTEP = '{\n  "version": "1.2.0",\n  "dependencies": {\n    "a": "1.2.0",\n    "b": "~3.0.1"\n  }\n}\n'


@pytest.mark.parametrize("swapped", [False, True])
def test_an_insertion_with_a_version_that_the_other_side_raised_everywhere_is_contested(swapped: bool) -> None:
    inserted = LOCKSTEP.replace('"a": "1.2.0"', '"a": "1.2.0",\n    "aa": "^1.2.0"')
    raised = LOCKSTEP.replace("1.2.0", "1.3.0")
    sides = (raised, inserted) if swapped else (inserted, raised)
    answer = merge(LOCKSTEP.encode(), *(side.encode() for side in sides), path="package.json")
    (conflict,) = answer.conflicts
    assert (conflict.place.at, conflict.reason, conflict.base) == ("/dependencies/aa", "both-changed", None)
    assert (conflict.ours, conflict.theirs)[swapped] == b'"^1.2.0"'
    assert (conflict.ours, conflict.theirs)[not swapped] is None
    assert conflict.suggestion == b'"^1.3.0"'


@pytest.mark.parametrize(
    "changed",
    [
        LOCKSTEP.replace('"a": "1.2.0"', '"a": "1.3.0"'),
        LOCKSTEP.replace("1.2.0", "1.1.0"),
        LOCKSTEP.replace('"version": "1.2.0"', '"version": "1.3.0"').replace('"a": "1.2.0"', '"a": "1.4.0"'),
        LOCKSTEP.replace("3.0.1", "3.1.0"),
    ],
    ids=["it stands elsewhere still", "lowered", "raised apart", "it stood at one place"],
)
def test_an_insertion_with_a_version_that_was_not_raised_everywhere_is_kept(changed: str) -> None:
    inserted = LOCKSTEP.replace('"a": "1.2.0"', '"a": "1.2.0",\n    "aa": "1.2.0",\n    "ab": "~3.0.1"')
    assert '"aa": "1.2.0",\n    "ab": "~3.0.1"' in merged(LOCKSTEP, inserted, changed)


def test_words_around_a_version_and_a_higher_version_are_contested_with_both_as_a_suggestion() -> None:
    ours, theirs = DEPENDENCIES.replace("^1.0.0", "workspace:^1.0.0"), DEPENDENCIES.replace("^1.0.0", "^1.1.0")
    (conflict,) = merge(DEPENDENCIES.encode(), ours.encode(), theirs.encode(), path="package.json").conflicts
    assert conflict.suggestion == b'"workspace:^1.1.0"'


def test_a_text_that_has_both_changes_is_taken() -> None:
    base, ours, theirs = (f'{{"say": "{text}"}}' for text in ("Helo you", "Hello you", "Hello you all"))
    assert merged(base, ours, theirs) == merged(base, theirs, ours) == theirs


def test_a_word_in_the_place_of_a_version_is_kept_though_the_other_side_raised_it() -> None:
    ours, theirs = DEPENDENCIES.replace("^1.0.0", "workspace:*"), DEPENDENCIES.replace("^1.0.0", "^1.1.0")
    assert merged(DEPENDENCIES, ours, theirs) == merged(DEPENDENCIES, theirs, ours) == ours


def test_members_too_deep_for_one_pattern_are_taken_apart_all_the_same() -> None:
    base = '{"a": [[[[[[[[{"x": 1, "y": 1}]]]]]]]], "b": 1}'
    ours, theirs = base.replace('"x": 1', '"x": 2'), base.replace('"y": 1', '"y": 2').replace('"b": 1', '"b": 2')
    assert merged(base, ours, theirs) == base.replace(" 1", " 2")


def test_an_insertion_with_a_version_that_the_other_side_raised_in_every_entry_beside_it_is_contested() -> None:
    entries = {"aa": "^4.2.0-alpha.0", "ac": "^4.2.0-alpha.0", "ba": "^5.2.0-alpha.0", "bc": "^5.2.0-alpha.0"}
    base = json.dumps({"dependencies": entries}, indent=2)
    ours = base.replace('    "ac"', '    "ab": "^4.2.0-alpha.0",\n    "ac"')
    (conflict,) = merge(base.encode(), ours.encode(), base.replace("a.0", "a.1").encode(), path="a.json").conflicts
    assert (conflict.place.at, conflict.suggestion) == ("/dependencies/ab", b'"^4.2.0-alpha.1"')


@pytest.mark.parametrize("swapped", [False, True])
def test_a_key_put_next_to_many_that_the_other_side_removed_is_contested(swapped: bool) -> None:
    keys = "abcdefgh"
    base, few, many = ({key: key for key in kept} for kept in (keys, keys[:2] + keys[5:], keys[:2] + keys[6:]))
    added = {**{key: key for key in keys[:4]}, "new": "x", **{key: key for key in keys[4:]}}
    assert json.loads(merged(*(json.dumps(side, indent=1) for side in (base, few, added)))) == {**few, "new": "x"}
    sides = [json.dumps(side, indent=1).encode() for side in ((added, many) if swapped else (many, added))]
    (conflict,) = merge(json.dumps(base, indent=1).encode(), *sides, path="a.json").conflicts
    assert (conflict.place.at, conflict.suggestion) == ("/new", b'"x"')


def test_elements_both_sides_put_between_two_others_are_contested_unless_the_list_is_sorted() -> None:
    base, ours, theirs = '["m", "c", "x"]', '["m", "n", "c", "x"]', '["m", "b", "c", "x"]'
    (conflict,) = merge(base.encode(), ours.encode(), theirs.encode(), path="a.json").conflicts
    assert (conflict.ours, conflict.theirs, conflict.suggestion) == (b'"n"', b'"b"', b'"n", "b"')
    base, ours, theirs = '["a", "b", "x", "z"]', '["a", "b", "n", "x", "z"]', '["a", "b", "c", "x", "z"]'
    assert merged(base, ours, theirs) == '["a", "b", "c", "n", "x", "z"]'


def test_elements_both_sides_append_are_both_kept() -> None:
    assert merged('["m", "c"]', '["m", "c", "n"]', '["m", "c", "b"]') == '["m", "c", "n", "b"]'
    assert json.loads(merged('{"list": []}', '{"list": ["n"]}', '{"list": ["b"]}')) == {"list": ["n", "b"]}


def test_lists_that_both_sides_made_are_contested_unless_one_has_the_other_in_it() -> None:
    base, ours, theirs = '{"a": 1}', '{"a": 1, "list": ["n"]}', '{"a": 1, "list": ["b"]}'
    (conflict,) = merge(base.encode(), ours.encode(), theirs.encode(), path="a.json").conflicts
    assert (conflict.place.at, conflict.ours, conflict.theirs) == ("/list/0", b'"n"', b'"b"')
    more = '{"a": 1, "list": ["b", "n"]}'
    assert merged(base, ours, more) == more
