import random

import pytest

from contextbase import merge as surface
from contextbase.merge import (
    MergeOutcome,
    MergePolicy,
    PathMergeRule,
    PlaceKind,
    Reason,
    Strategy,
    merge,
    render_markers,
)
from contextbase.merge.engine import MAX_STRUCTURED_BYTES

BASE = b'{\n  "a": 1,\n  "b": 2\n}\n'
OURS = b'{\n  "a": 3,\n  "b": 2,\n  "c": 1\n}\n'
THEIRS = b'{\n  "a": 4,\n  "b": 2,\n  "d": null\n}\n'


def policy(strategy: Strategy, **fields: int) -> MergePolicy:
    return MergePolicy(rules=(PathMergeRule(pattern="**", strategy=strategy),), **fields)


def test_only_the_contested_key_is_a_conflict_and_the_rest_is_merged() -> None:
    merged = merge(BASE, OURS, THEIRS, path="a.json")
    assert merged.outcome is MergeOutcome.CONFLICT
    (conflict,) = merged.conflicts
    assert (conflict.place.kind, conflict.place.at) == (PlaceKind.POINTER, "/a")
    assert (conflict.base, conflict.ours, conflict.theirs) == (b"1", b"3", b"4")
    assert merged.partial == b'{\n  "a": 3,\n  "b": 2,\n  "c": 1,\n  "d": null\n}\n'


def test_markers_enclose_the_contested_lines_alone() -> None:
    drawn = render_markers(merge(BASE, OURS, THEIRS, path="a.json"), ours="head", theirs="agent 7")
    assert drawn == (
        b'{\n<<<<<<< head\n  "a": 3,\n||||||| base\n  "a": 1,\n=======\n  "a": 4,\n>>>>>>> agent 7\n'
        b'  "b": 2,\n  "c": 1,\n  "d": null\n}\n'
    )


def test_a_clean_line_merge_that_repeats_a_key_is_merged_by_key_instead() -> None:
    lines = [f'  "k{number}": {number}' for number in range(12)]
    base = "{\n" + ",\n".join(lines) + "\n}\n"
    ours = base.replace('  "k1": 1,\n', '  "k1": 1,\n  "new": true,\n')
    theirs = base.replace('  "k9": 9,\n', '  "k9": 9,\n  "new": true,\n')
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.json")
    assert merged.strategy == "json"
    assert merged.content is not None
    assert merged.content.count(b'"new": true') == 1


def test_a_clean_line_merge_that_breaks_the_file_and_cannot_be_mended_is_a_conflict() -> None:
    lines = [f'  "k{number}": {number}' for number in range(12)]
    base = "{\n" + ",\n".join(lines) + "\n}\n"
    ours = base.replace('  "k1": 1,\n', '  "k1": 1,\n  "new": 1,\n')
    theirs = base.replace('  "k9": 9,\n', '  "k9": 9,\n  "new": 2,\n')
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.json")
    assert [conflict.place.at for conflict in merged.conflicts] == ["/new"]
    assert merged.conflicts[0].reason is Reason.BOTH_ADDED


def test_missing_and_null_are_different_values() -> None:
    merged = merge(b'{"a": null, "b": 1}', b'{"b": 2}', b'{"a": null, "b": 1, "c": "delete"}', path="a.json")
    assert merged.content == b'{"b": 2, "c": "delete"}'


def test_a_conflict_of_lines_names_the_lines_and_suggests_what_may_be_meant() -> None:
    base, ours, theirs = b"one\nthe quick fox\ntwo\n", b"zero\none\nthe slow fox\ntwo\n", b"one\nthe quick dog\ntwo\n"
    merged = merge(base, ours, theirs, path="notes.txt")
    (conflict,) = merged.conflicts
    assert (conflict.place.kind, conflict.place.at) == (PlaceKind.LINES, "3-3")
    assert conflict.suggestion == b"the slow dog\n"
    assert merged.partial == ours


@pytest.mark.parametrize(
    ("strategy", "content", "other"),
    [
        (Strategy.LAST_WRITER, THEIRS, OURS),
        (Strategy.PRIORITY, THEIRS, OURS),
        (Strategy.OURS, OURS.replace(b'"c": 1', b'"c": 1,\n  "d": null'), THEIRS),
        (Strategy.THEIRS, OURS.replace(b'"c": 1', b'"c": 1,\n  "d": null').replace(b"3", b"4"), OURS),
    ],
)
def test_a_policy_decides_and_hands_over_the_side_that_lost(strategy: Strategy, content: bytes, other: bytes) -> None:
    merged = merge(BASE, OURS, THEIRS, path="a.json", policy=policy(strategy))
    assert (merged.outcome, merged.content, merged.other) == (MergeOutcome.MERGED, content, other)
    assert merged.strategy == strategy


def test_priority_keeps_the_head_of_a_higher_rank() -> None:
    merged = merge(BASE, OURS, THEIRS, path="a.json", policy=policy(Strategy.PRIORITY, ours_rank=2, theirs_rank=1))
    assert (merged.content, merged.other) == (OURS, THEIRS)


def test_review_never_merges_but_suggests_the_automatic_merge() -> None:
    merged = merge(b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", path="a.txt", policy=policy(Strategy.REVIEW))
    assert merged.outcome is MergeOutcome.CONFLICT
    assert merged.conflicts[0].reason is Reason.REVIEW
    assert merged.conflicts[0].suggestion == b"A\nb\nC\n"


def test_union_keeps_the_lines_of_both_sides() -> None:
    merged = merge(b"a\n", b"a\nb\n", b"a\nc\n", path="log.txt", policy=policy(Strategy.UNION))
    assert merged.content == b"a\nb\nc\n"


def test_the_last_matching_rule_decides() -> None:
    rules = (
        PathMergeRule(pattern="*.json", strategy=Strategy.REVIEW),
        PathMergeRule(pattern="config/**", strategy=Strategy.OURS),
        PathMergeRule(pattern="/top.txt", strategy=Strategy.THEIRS),
    )
    chosen = MergePolicy(rules=rules)
    assert chosen.strategy_for("deep/down/a.json") is Strategy.REVIEW
    assert chosen.strategy_for("config/a.json") is Strategy.OURS
    assert chosen.strategy_for("top.txt") is Strategy.THEIRS
    assert chosen.strategy_for("deep/top.txt") is Strategy.AUTO
    assert chosen.strategy_for("x.crdt.json") is Strategy.REVIEW
    assert MergePolicy().strategy_for("x.crdt.json") is Strategy.CRDT


def test_of_binary_files_the_last_writer_wins_and_the_other_is_handed_over() -> None:
    merged = merge(b"\0a", b"\0b", b"\0c", path="a.png")
    assert (merged.outcome, merged.content, merged.other) == (MergeOutcome.MERGED, b"\0c", b"\0b")
    assert "binary" in merged.notes[0]


def test_a_change_of_line_ends_does_not_conflict_with_a_change_of_lines() -> None:
    merged = merge(b"a\nb\nc\n", b"a\r\nb\r\nc\r\n", b"a\nB\nc\n", path="a.txt")
    assert merged.content == b"a\r\nB\r\nc\r\n"


def test_utf_16_is_merged_as_text_and_stays_utf_16() -> None:
    base, ours, theirs = (text.encode("utf-16") for text in ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"))
    assert merge(base, ours, theirs, path="a.txt").content == "A\nb\nC\n".encode("utf-16")


def test_a_final_newline_and_a_byte_order_mark_go_with_the_side_that_changed_them() -> None:
    merged = merge(b'{"a": 1,\n"b": 1}', b'{"a": 2,\n"b": 1}\n', b'\xef\xbb\xbf{"a": 1,\n"b": 2}', path="a.json")
    assert merged.content == b'\xef\xbb\xbf{"a": 2,\n"b": 2}\n'


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("[" * 100_000 + "%s" + "]" * 100_000, id="deep nesting"),
        pytest.param('{"a": ' * 400 + "%s" + "}" * 400, id="nesting beyond the stack"),
        pytest.param("[" + "9" * 200_000 + ", %s]", id="a huge number"),
        pytest.param('["' + "x" * MAX_STRUCTURED_BYTES + '", %s]', id="over the size for structure"),
        pytest.param('{"a": 1, "a": %s}', id="a key that stands twice"),
        pytest.param('{"a": NaN, "b": %s}', id="not a number"),
    ],
)
def test_what_cannot_be_taken_apart_is_merged_as_lines_with_a_note(content: str) -> None:
    base, ours, theirs = ((content % number).encode() for number in (1, 2, 3))
    merged = merge(base, ours, theirs, path="a.json")
    assert merged.outcome is MergeOutcome.CONFLICT
    if merged.strategy == "lines":
        assert merged.notes
    assert merged.partial == ours


def test_bytes_that_are_not_utf_8_are_merged_as_lines_with_a_note() -> None:
    merged = merge(b"\xff\na\nb\n", b"\xff\nA\nb\n", b"\xff\nB\nb\n", path="a.json")
    assert merged.outcome is MergeOutcome.CONFLICT
    assert "UTF-8" in merged.notes[0]


def test_no_time_means_lines_not_an_endless_merge() -> None:
    records = ",\n".join(f'{{"id": {number}, "n": [{number}]}}' for number in range(3000))
    base = f'{{"n": 1, "list": [{records}]}}'
    ours, theirs = base.replace('"n": 1', '"n": 2', 1), base.replace('"n": 1', '"m": 2, "n": 3', 1)
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.json", policy=MergePolicy(seconds=0.0))
    assert merged.outcome is MergeOutcome.CONFLICT
    assert "no time" in merged.notes[0]


@pytest.mark.parametrize("strategy", [Strategy.AUTO, Strategy.UNION])
def test_too_many_lines_that_may_differ_are_contested_as_a_whole(strategy: Strategy) -> None:
    lines = b"x\n" * 200_001
    policy = MergePolicy(rules=(PathMergeRule(pattern="*", strategy=strategy),))
    base, ours, theirs = b"a\n" + lines + b"a\n", b"b\n" + lines + b"a\n", b"a\n" + lines + b"b\n"
    merged = merge(base, ours, theirs, path="a.txt", policy=policy)
    assert (merged.outcome, merged.content, len(merged.notes)) == (MergeOutcome.CONFLICT, None, 1)
    [conflict] = merged.conflicts
    assert (conflict.place.kind, conflict.ours, conflict.theirs) == (PlaceKind.FILE, ours, theirs)


@pytest.mark.parametrize("strategy", [Strategy.AUTO, Strategy.UNION])
@pytest.mark.parametrize("path", ["a.txt", "a.md", "a.json"])
@pytest.mark.parametrize("values", [2, 10, 1000])
def test_texts_whose_lines_take_too_many_steps_to_compare_are_contested_as_a_whole(
    values: int, path: str, strategy: Strategy
) -> None:
    base, ours, theirs = (_random_lines(20_000, values, seed=seed) for seed in range(3))
    policy = MergePolicy(rules=(PathMergeRule(pattern="*", strategy=strategy),))
    merged = merge(base, ours, theirs, path=path, policy=policy)
    assert (merged.outcome, merged.strategy, merged.content) == (MergeOutcome.CONFLICT, "file", None)
    assert "differ too much" in merged.notes[0]
    [conflict] = merged.conflicts
    assert (conflict.place.kind, conflict.ours, conflict.theirs) == (PlaceKind.FILE, ours, theirs)


def test_a_text_of_5000_shuffled_lines_is_still_merged_by_line() -> None:
    lines = [b"line %d of some text\n" % number for number in range(5000)]
    sides = [b"".join(random.Random(seed).sample(lines, len(lines))) for seed in range(2)]
    assert merge(b"".join(lines), *sides, path="a.txt").strategy == "lines"


def test_many_changes_all_over_a_long_table_are_merged() -> None:
    base = [b"%d,name %d,%d\n" % (row, row % 97, row * 31 % 1000) for row in range(50_000)]
    ours = [b"%d,ours\n" % row if row % 100 == 0 else line for row, line in enumerate(base)]
    theirs = [b"%d,theirs\n" % row if row % 100 == 50 else line for row, line in enumerate(base)]
    theirs[25_020:25_020] = [b"new row %d\n" % row for row in range(10_000)]
    merged = merge(b"".join(base), b"".join(ours), b"".join(theirs), path="a.txt")
    assert merged.outcome is MergeOutcome.MERGED
    assert merged.content is not None
    assert (merged.content.count(b",ours\n"), merged.content.count(b",theirs\n")) == (500, 500)


def test_suggestions_for_all_conflicts_of_a_file_together_take_a_bounded_number_of_steps() -> None:
    rng = random.Random(1)

    def text(last: str, costly: int) -> bytes:
        paragraphs = (" ".join(rng.choice("abcdefgh") for _ in range(400)) for _ in range(costly))
        return "".join(f"{paragraph}\nkept {number}\n" for number, paragraph in enumerate([*paragraphs, last])).encode()

    for costly, suggested in ((0, b"one B three D\n"), (100, None)):
        sides = (text("one two three four", costly), text("one B three four", costly), text("one two three D", costly))
        merged = merge(*sides, path="a.txt")
        assert len(merged.conflicts) == costly + 1
        assert merged.conflicts[-1].suggestion == suggested


def _random_lines(count: int, values: int, *, seed: int) -> bytes:
    rng = random.Random(seed)
    return b"".join(b"%d\n" % rng.randrange(values) for _ in range(count))


def test_a_long_text_whose_differences_are_close_is_merged() -> None:
    lines = b"x\n" * 200_001
    merged = merge(lines + b"a\n\nb\n", lines + b"c\n\nb\n", lines + b"a\n\nd\n", path="a.txt")
    assert (merged.outcome, merged.content) == (MergeOutcome.MERGED, lines + b"c\n\nd\n")


def test_the_public_surface_is_sorted_and_there() -> None:
    assert surface.__all__ == sorted(surface.__all__)
    assert all(hasattr(surface, name) for name in surface.__all__)
