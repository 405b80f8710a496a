"""The laws of merge(), over every file type: what must hold whatever the bytes."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextbase.merge import Merged, MergeOutcome, merge, render_markers
from contextbase.merge.budget import Budget
from contextbase.merge.document import Group
from contextbase.merge.formats import FORMATS
from contextbase.merge.lines import merge_lines
from contextbase.merge.ports import Format, Unstructured
from contextbase.merge.shared import Shared
from contextbase.merge.sniff import decode, file_type
from contextbase.merge.structure import merge_structured
from contextbase.merge.texts import Texts

PATHS = [
    "notes.txt",
    "a.json",
    "a.jsonl",
    "a.ipynb",
    "a.yaml",
    "a.toml",
    "README.md",
    "CHANGELOG.md",
    "a.ini",
    "a.csv",
    "requirements.txt",
    "a.crdt.json",
]

anything = st.one_of(st.none(), st.binary(max_size=60), st.text(max_size=60).map(str.encode))
paths = st.sampled_from(PATHS)


@given(base=anything, other=anything, path=paths)
def test_a_side_that_changed_nothing_leaves_the_other_side_as_it_is(
    base: bytes | None, other: bytes | None, path: str
) -> None:
    assert merge(base, base, other, path=path).content == other
    assert merge(base, other, base, path=path).content == other
    assert merge(base, other, other, path=path).content == other


@given(base=anything, ours=anything, theirs=anything, path=paths)
def test_no_bytes_make_it_raise_and_a_conflict_always_keeps_ours_at_hand(
    base: bytes | None, ours: bytes | None, theirs: bytes | None, path: str
) -> None:
    merged = merge(base, ours, theirs, path=path)
    if merged.outcome is MergeOutcome.CONFLICT:
        assert merged.content is None
        assert merged.conflicts
        assert (merged.partial is None) == (ours is None)
    render_markers(merged)


LINES = {
    "notes.txt": ["alpha", "beta", "gamma", "delta", "", "  indented"],
    "a.yaml": ["a: 1", "b: 2", "c:", "  - x", "  - y", "# note", "d: {e: 1}", "a: 3", "b: [1, 2]"],
    "a.toml": ["a = 1", "b = 2", "[t]", "c = 'x'", "[t.u]", "d = [1, 2]", "# note", "a = 3", ""],
    "README.md": ["# One", "## Two", "text", "- item", "- other", "| a | b |", "", "## Three", "more text"],
    "CHANGELOG.md": ["# Changes", "## [Unreleased]", "### Added", "- one", "- two", "## 1.0.0", "", "### Fixed"],
    "a.ini": ["[one]", "a=1", "b=2", "[two]", "a=3", "; note", ""],
    "a.csv": ["id,name", "1,ann", "2,bob", "3,cid", "1,eve"],
    "requirements.txt": ["numpy==1.0", "requests>=2", "# note", "flask", "numpy==2.0", ""],
    "a.jsonl": ['{"id": 1}', '{"id": 2, "x": 1}', '{"id": 1, "x": 2}', "5", "null", '"text"'],
}


@st.composite
def edited_lines(
    draw: st.DrawFn, among: Sequence[str] = tuple(sorted(LINES)), lines: Mapping[str, Sequence[str]] = LINES
) -> tuple[str, bytes, bytes, bytes]:
    """A path of a line-based type and three versions of a text made of that type's lines."""
    path = draw(st.sampled_from(among))
    line = st.sampled_from(lines[path])
    base = draw(st.lists(line, max_size=8 if lines is LINES else 14))
    sides = []
    for _ in range(2):
        side = list(base)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(side)))
            match draw(st.sampled_from(["insert", "delete", "replace"])):
                case "insert":
                    side.insert(at, draw(line))
                case "delete":
                    del side[at : at + 1]
                case _:
                    side[at : at + 1] = [draw(line)]
        sides.append(side)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    final = [draw(st.sampled_from([newline, ""])) for _ in range(3)]
    texts = [newline.join(side) + (end if side else "") for side, end in zip((base, *sides), final, strict=True)]
    return path, *(text.encode() for text in texts)


@given(edited_lines())
def test_every_line_of_a_clean_result_is_a_line_of_some_side(case: tuple[str, bytes, bytes, bytes]) -> None:
    path, base, ours, theirs = case
    merged = merge(base, ours, theirs, path=path)
    if merged.content is not None:
        known = {line.strip() for side in (base, ours, theirs) for line in side.split(b"\n")}
        assert {line.strip() for line in merged.content.split(b"\n")} <= known | {b""}


@given(edited_lines())
def test_a_line_that_one_side_added_is_never_lost_in_a_clean_result(case: tuple[str, bytes, bytes, bytes]) -> None:
    path, base, ours, theirs = case
    if path in ("requirements.txt", "a.jsonl"):
        return  # of two versions the higher wins, and two records with one id become one
    merged = merge(base, ours, theirs, path=path)
    if merged.content is not None:
        in_base, in_ours, in_theirs, found = map(_stripped_lines, (base, ours, theirs, merged.content))
        assert in_ours - in_base <= found
        assert in_theirs - in_base <= found


def _stripped_lines(content: bytes) -> set[bytes]:
    return {line.strip() for line in content.split(b"\n")} - {b""}


@given(edited_lines())
def test_swapping_the_sides_swaps_only_conflict_sides_and_the_order_of_inserts(
    case: tuple[str, bytes, bytes, bytes],
) -> None:
    path, base, ours, theirs = case
    merged, swapped = merge(base, ours, theirs, path=path), merge(base, theirs, ours, path=path)
    assert (merged.outcome is MergeOutcome.CONFLICT) == (swapped.outcome is MergeOutcome.CONFLICT)
    assert _lines(merged.content) == _lines(swapped.content)
    sides = Counter((conflict.base, conflict.ours, conflict.theirs) for conflict in merged.conflicts)
    assert sides == Counter((conflict.base, conflict.theirs, conflict.ours) for conflict in swapped.conflicts)


def _lines(content: bytes | None) -> Counter[bytes] | None:
    return None if content is None else Counter(line.strip() for line in content.split(b"\n") if line.strip())


@given(edited_lines())
def test_a_clean_result_is_as_valid_as_the_sides_and_a_valid_line_merge_stands(
    case: tuple[str, bytes, bytes, bytes],
) -> None:
    path, base, ours, theirs = case
    merged = merge(base, ours, theirs, path=path)
    assert_validity_is_kept(path, base, ours, theirs, merged)


def assert_validity_is_kept(path: str, base: bytes, ours: bytes, theirs: bytes, merged: Merged) -> None:
    readers = FORMATS.get(file_type(path), ())
    by_line = merge_lines(base, ours, theirs)
    for reader in readers:
        if all(reader.is_valid(decode(side)[0], Budget(10)) for side in (base, ours, theirs) if side):
            if merged.content is not None and merged.strategy != "trivial":
                assert reader.is_valid(decode(merged.content)[0], Budget(10))
            if by_line is not None and reader.is_valid(decode(by_line)[0], Budget(10)):
                assert merged.content == by_line
    if not readers and by_line is not None:
        assert merged.content == by_line


@pytest.mark.parametrize("path", PATHS)
def test_a_file_deleted_on_one_side_and_changed_on_the_other_is_a_conflict(path: str) -> None:
    for ours, theirs in ((None, b"changed\n"), (b"changed\n", None)):
        merged = merge(b"base\n", ours, theirs, path=path)
        assert merged.outcome is MergeOutcome.CONFLICT
        assert merged.partial == ours


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_a_hundred_appenders_are_no_special_case(ours: list[int], theirs: list[int]) -> None:
    """Whatever both sides append to a list of a *.crdt.json stays, in each side's order."""
    base = json.dumps({"log": ["start"]}).encode()
    sides = [
        json.dumps({"log": ["start", *(f"{who} {entry}" for entry in entries)]})
        for who, entries in (("ours", ours), ("theirs", theirs))
    ]
    merged = merge(base, sides[0].encode(), sides[1].encode(), path="log.crdt.json")
    assert merged.content is not None
    log = json.loads(merged.content)["log"]
    for who, entries in (("ours", ours), ("theirs", theirs)):
        assert [entry for entry in log if entry.startswith(who)] == [f"{who} {entry}" for entry in entries]


class ReadAlone:
    """A format that does not know what the sides share."""

    def __init__(self, reader: Format) -> None:
        self.name, self.is_valid, self.resolve, self.place = reader.name, reader.is_valid, reader.resolve, reader.place
        self._reader = reader

    def parse(self, text: str, budget: Budget, _shared: Shared | None = None) -> Group:
        return self._reader.parse(text, budget)


@given(edited_lines(["a.yaml", "a.toml"]))
def test_reading_what_the_sides_share_once_changes_no_result(case: tuple[str, bytes, bytes, bytes]) -> None:
    path, *sides = case
    (reader,) = FORMATS[file_type(path)]
    texts = Texts.read(*sides)
    if all(reader.is_valid(side, Budget(10)) for side in (texts.base, texts.ours, texts.theirs)):
        assert outcome_of(texts, reader) == outcome_of(texts, ReadAlone(reader))


NESTED_LINES = {
    "a.yaml": [
        *("jobs:", "  build:", "    steps:", "    - run: x", "    - uses: a@1", "      with: 1", "  # note", "  test:"),
        *(
            "    env: {A: 1}",
            "    env: {A: 2}",
            "    run: |",
            "      b: 1",
            "    text: 'open",
            "      c: 1'",
            "",
            "on: x",
        ),
    ],
    "README.md": [
        *("# One", "## Two", "text", "more text", "---", "===", "- item", "- other", "", "", "[a]: b", "[c]: d"),
        *("```", "# no title", "## Three", "<!-- a", "-->"),
    ],
    "CHANGELOG.md": [
        *("# Changes", "## [Unreleased]", "### Added", "- one (#1)", "- two (#2)", "## 1.0.0", "", "", "### Fixed"),
        *("1.1", "~~~", "* three", "text"),
    ],
}


class ReadAround:
    """A format that looks for no passage or block that all differences stand in."""

    def __init__(self, reader: Format) -> None:
        self.name, self.is_valid, self.resolve, self.place = reader.name, reader.is_valid, reader.resolve, reader.place
        self._reader = reader

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        if shared is not None:
            shared.once("passage", lambda: None)
            shared.once("block", lambda: None)
        return self._reader.parse(text, budget, shared)


@given(edited_lines(tuple(NESTED_LINES), NESTED_LINES))
@example(case=("README.md", b"# A\n\nx\nB\n---\n\n- a\n", b"# A\n\nx\n\nB\n---\n\n- a\n", b"# A\n\ny\nB\n---\n\n- a\n"))
def test_reading_only_where_the_sides_differ_changes_no_result(case: tuple[str, bytes, bytes, bytes]) -> None:
    path, *sides = case
    (reader,) = FORMATS[file_type(path)]
    texts = Texts.read(*sides)
    if all(reader.is_valid(side, Budget(10)) for side in (texts.base, texts.ours, texts.theirs)):
        within, around = outcome_of(texts, reader), outcome_of(texts, ReadAround(reader))
        if isinstance(within, Merged) and isinstance(around, Merged):
            within, around = replace(within, pieces=()), replace(around, pieces=())  # the key above may be in these
        assert within == around


def outcome_of(texts: Texts, reader: Format) -> Merged | str:
    try:
        return merge_structured(texts, reader, Budget(10))
    except Unstructured as problem:
        return str(problem)
