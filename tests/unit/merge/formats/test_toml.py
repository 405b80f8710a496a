import pytest

from contextbase.merge import MergeOutcome, PlaceKind, merge

BASE = """\
[package]
name = "a"
version = "1.0.0"

[dependencies]
# the runtime
tokio = { version = "1.0", features = ["sync"] }
serde = "1.0"  # (de)serialization

[[bench]]
name = "one"
harness = false
"""


def merged_text(ours: str, theirs: str, base: str = BASE) -> str:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="Cargo.toml")
    assert merged.outcome is MergeOutcome.MERGED, merged.conflicts
    assert merged.content is not None
    return merged.content.decode()


def test_members_of_one_inline_table_merge_one_by_one() -> None:
    ours = BASE.replace('"1.0", features', '"1.2", features')
    theirs = BASE.replace('["sync"]', '["sync", "time"]')
    assert 'tokio = { version = "1.2", features = ["sync", "time"] }' in merged_text(ours, theirs)


def test_the_higher_of_two_raised_versions_is_taken() -> None:
    ours, theirs = BASE.replace('"1.0.0"', '"1.1.0"'), BASE.replace('"1.0.0"', '"2.0.0"')
    assert merged_text(ours, theirs) == theirs


def test_tables_both_sides_append_are_both_kept() -> None:
    ours = BASE + '\n[[bench]]\nname = "two"\nharness = false\n'
    theirs = BASE + '\n[[bench]]\nname = "three"\nharness = false\n'
    assert merged_text(ours, theirs) == ours + '\n[[bench]]\nname = "three"\nharness = false\n'


def test_comments_stay_with_the_key_they_stand_above_or_behind() -> None:
    ours = BASE.replace('serde = "1.0"', 'serde = "1.1"')
    theirs = BASE.replace("# the runtime\n", "# the async runtime\n").replace('name = "a"', 'name = "b"')
    text = merged_text(ours, theirs.replace('features = ["sync"]', "features = []"))
    assert "# the async runtime\ntokio" in text
    assert 'serde = "1.1"  # (de)serialization' in text


def test_a_sub_table_belongs_to_the_array_element_above_it() -> None:
    base = '[[a]]\nname = "x"\n[a.opts]\nk = 1\n[[a]]\nname = "y"\n[a.opts]\nk = 1\n'
    ours = base.replace("k = 1\n[[a]]", "k = 2\n[[a]]")
    theirs = base.replace('name = "y"\n[a.opts]\nk = 1', 'name = "y"\n[a.opts]\nk = 3').replace('"x"\n', '"x"\nz = 1\n')
    text = merged_text(ours, theirs, base)
    assert text == '[[a]]\nname = "x"\nz = 1\n[a.opts]\nk = 2\n[[a]]\nname = "y"\n[a.opts]\nk = 3\n'


def test_an_array_that_looks_like_a_table_header_is_no_table() -> None:
    base = 'a = [\n  ["x"]\n]\nb = 1\n'
    ours, theirs = base.replace("b = 1", "b = 2"), base.replace('["x"]', '["y"]').replace("b = 1", "b = 1\nc = 1")
    assert merged_text(ours, theirs, base) == 'a = [\n  ["y"]\n]\nb = 2\nc = 1\n'


def test_the_same_key_set_to_different_words_is_contested_by_its_dotted_key() -> None:
    ours, theirs = BASE.replace('"a"', '"b"'), BASE.replace('"a"', '"c"')
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="Cargo.toml")
    (conflict,) = merged.conflicts
    assert (conflict.place.kind, conflict.place.at) == (PlaceKind.KEY, "package.name")
    assert (conflict.base, conflict.ours, conflict.theirs) == (b'"a"', b'"b"', b'"c"')


def test_a_line_of_a_string_that_looks_like_a_table_does_no_harm() -> None:
    base = "[a]\ntext = '''\n[b]\nz = 1\n'''\n\n[c]\nx = 1\ny = 1\n"
    ours, theirs = base.replace("x = 1", "x = 2"), base.replace("y = 1", "y = 2").replace("z = 1", "w = 1")
    assert merged_text(ours, theirs, base) == theirs.replace("x = 1", "x = 2")


def test_a_sub_table_of_an_array_stays_with_its_element() -> None:
    base = "[[job]]\nname = 'a'\n[job.run]\nx = 1\ny = 1\n[[job]]\nname = 'b'\n[job.run]\nx = 1\n"
    ours, theirs = base.replace("x = 1", "x = 2", 1), base.replace("y = 1", "y = 2")
    assert merged_text(ours, theirs, base) == ours.replace("y = 1", "y = 2")


REQUIREMENTS = '[dependencies]\na = { path = "../a", version = "1.0" }\nb = "2.1"\nc = "0.3"\n'
INSERTED = REQUIREMENTS.replace('b = "2.1"\n', 'b = "2.1"\nbb = "4.2"\n')
ELSEWHERE = "[dependencies]\na = { workspace = true }\nb = { workspace = true }\nc = { workspace = true }\n"


def test_a_version_inserted_where_the_other_side_did_away_with_them_is_contested() -> None:
    for sides in ((INSERTED, ELSEWHERE), (ELSEWHERE, INSERTED)):
        answer = merge(REQUIREMENTS.encode(), *(side.encode() for side in sides), path="Cargo.toml")
        (conflict,) = answer.conflicts
        assert (conflict.place.at, conflict.suggestion) == ("dependencies.bb", b"{ workspace = true }")
        assert {conflict.ours, conflict.theirs} == {b'"4.2"', None}


@pytest.mark.parametrize(
    ("inserted", "changed"),
    [
        (INSERTED.replace('"4.2"', '{ path = "../bb" }'), ELSEWHERE),
        (INSERTED, ELSEWHERE.replace("c = { workspace = true }", 'c = "0.3"')),
        (INSERTED, ELSEWHERE.replace("{ workspace = true }", '"5.0"')),
    ],
    ids=["it has no version", "two are no rule", "they have versions still"],
)
def test_what_is_inserted_beside_other_changes_is_kept(inserted: str, changed: str) -> None:
    line = next(line for line in inserted.splitlines(keepends=True) if line.startswith("bb"))
    answer = merge(REQUIREMENTS.encode(), inserted.encode(), changed.encode(), path="Cargo.toml")
    assert answer.content is not None
    assert line in answer.content.decode()
