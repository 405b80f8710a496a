import pytest

from contextbase.merge import MergeOutcome, PlaceKind, merge
from contextbase.merge.budget import Budget
from contextbase.merge.formats.yaml_check import is_valid_yaml

WORKFLOW = """\
on: [push]
jobs:
  test: # the main one
    steps:
      - uses: actions/checkout@v3

      - name: Run
        run: |
          one
          # not a comment
          two
        env:
          A: 1
"""


def merged_text(base: str, ours: str, theirs: str) -> str:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml")
    assert merged.outcome is MergeOutcome.MERGED, merged.conflicts
    assert merged.content is not None
    return merged.content.decode()


def test_keys_on_neighbouring_lines_merge_one_by_one() -> None:
    base = "a: 1\nb: 1\nc: 1\n"
    assert merged_text(base, "a: 2\nb: 1\nc: 1\nd: 1\n", "a: 1\nb: 2\nc: 2\n") == "a: 2\nb: 2\nc: 2\nd: 1\n"


def test_a_key_may_come_before_the_one_on_the_dash_s_line() -> None:
    ours = WORKFLOW.replace("- name: Run\n", "- id: run\n        name: Run\n").replace("A: 1", "A: 2")
    theirs = WORKFLOW.replace("- name: Run\n", "- name: Run\n        if: always()\n").replace(
        "checkout@v3", "checkout@v4"
    )
    theirs = theirs.replace("A: 1", "A: 1\n          B: 1")
    text = merged_text(WORKFLOW, ours, theirs)
    assert "      - id: run\n        name: Run\n        if: always()\n        run: |\n" in text
    assert "          A: 2\n          B: 1\n" in text
    assert "actions/checkout@v4" in text


def test_a_block_scalar_merges_by_line_and_its_hashes_are_text() -> None:
    ours = WORKFLOW.replace("          one\n", "          zero\n          one\n").replace("[push]", "[push, release]")
    theirs = WORKFLOW.replace("          two\n", "          two\n          three\n").replace("[push]", "[push, pull]")
    text = merged_text(WORKFLOW, ours, theirs)
    assert "zero\n          one\n          # not a comment\n          two\n          three\n" in text
    assert "on: [push, release, pull]" in text


def test_requirements_in_a_list_are_matched_by_what_is_required() -> None:
    base = "dependencies:\n  - numpy >=1.0\n  - scipy >=1.0\n"
    ours = "dependencies:\n  - numpy >=1.2\n  - pandas >=2.0\n  - scipy >=1.0\n"
    theirs = "dependencies:\n  - numpy >=1.1\n  - scipy >=1.4\n"
    assert merged_text(base, ours, theirs) == ("dependencies:\n  - numpy >=1.2\n  - pandas >=2.0\n  - scipy >=1.4\n")


UNNAMED = "  - pip:\n      - x\n"


def test_elements_side_by_side_are_matched_by_name_though_others_of_the_list_have_none() -> None:
    base = f"dependencies:\n{UNNAMED}  - numpy >=1.0,<2.0\n"
    ours = f"dependencies:\n{UNNAMED}  - numpy >=3.0,<4.0\n  - scipy >=1.0\n"
    theirs = f"dependencies:\n{UNNAMED}  - numpy >=2.0,<3.0\n"
    assert merged_text(base, ours, theirs) == ours


def test_elements_one_side_removed_and_the_other_replaced_are_contested() -> None:
    base = f"dependencies:\n{UNNAMED}  - numpy >=1.0\n"
    theirs = f"dependencies:\n{UNNAMED}  - polars >=1.0\n"
    merged = merge(base.encode(), f"dependencies:\n{UNNAMED}".encode(), theirs.encode(), path="a.yaml")
    assert merged.outcome is MergeOutcome.CONFLICT


def test_an_alias_of_what_the_sides_agree_on_stays_valid() -> None:
    base = "a: &one 1\nb: 1\nc: 1\n"
    assert merged_text(base, "a: &one 1\nb: *one\nc: 1\n", "a: &one 1\nb: 1\nc: 2\n") == "a: &one 1\nb: *one\nc: 2\n"


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_lists_of_new_elements_the_one_that_has_the_other_in_it_keeps_its_order(swapped: bool) -> None:
    base, less, more = "- a\n", "- a\n- y\n- x\n", "- a\n- y\n- m\n- x\n- b\n"
    assert merged_text(base, *((more, less) if swapped else (less, more))) == more


def test_an_element_beside_one_the_other_side_replaced_stays() -> None:
    assert merged_text("on:\n- push\n", "on:\n- push\n- pull\n", "on:\n- merge\n") == "on:\n- merge\n- pull\n"


def test_elements_beside_one_the_other_side_removed_are_contested() -> None:
    merged = merge(b"on:\n- a\n- b\n", b"on:\n- a\n- b\n- c\n", b"on:\n- a\n", path="x.yaml")
    assert merged.outcome is MergeOutcome.CONFLICT


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [("a:\n  x: 1\n  y: 2\n", "a:\n  y: 2\n", "a:\n  x: 1\n"), ("a:\n- x\n- y\n", "a:\n- y\n", "a:\n- x\n")],
)
def test_what_both_sides_would_empty_together_is_contested_not_null(base: str, ours: str, theirs: str) -> None:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml")
    assert merged.outcome is MergeOutcome.CONFLICT


def test_quotes_alone_are_no_change_of_a_value() -> None:
    base = "a: x\nb: y\n"
    assert merged_text(base, "a: 'x'\nb: y\n", "a: z\nb: y\n") == "a: z\nb: y\n"


def test_documents_of_a_stream_are_told_apart_by_kind_and_name() -> None:
    one, two = (f"---\nkind: Pod\nmetadata:\n  name: {name}\nspec: 1\n" for name in ("a", "b"))
    new = "---\nkind: Pod\nmetadata:\n  name: c\nspec: 1\n"
    text = merged_text(
        one + two, new + one + two.replace("spec: 1", "spec: 2"), one.replace("spec: 1", "spec: 3") + two
    )
    assert text == new + one.replace("spec: 1", "spec: 3") + two.replace("spec: 1", "spec: 2")


def test_an_edit_inside_what_the_other_side_removed_is_contested_by_its_key() -> None:
    merged = merge(b"a:\n  b: 1\nc: 1\n", b"c: 1\n", b"a:\n  b: 2\nc: 1\n", path="a.yml")
    (conflict,) = merged.conflicts
    assert (conflict.place.kind, conflict.place.at, conflict.ours) == (PlaceKind.KEY, "a", None)


@pytest.mark.parametrize(
    "text",
    ["a: [1\n", "a: 1\na: 2\n", "a: *b\n", "- " * 300 + "x\n", "[" * 100_000, "a:\n\t- b\n", "\0"],
    ids=["bracket", "repeated key", "unknown alias", "deep", "very deep", "tab", "nul"],
)
def test_what_is_not_sound_yaml_is_found_out(text: str) -> None:
    assert not is_valid_yaml(text, Budget(10))


def test_aliases_are_not_expanded_by_the_check() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    assert is_valid_yaml("\n".join(levels) + "\n", Budget(10))


@pytest.mark.parametrize("value", ["|", '"'], ids=["block scalar", "quotes"])
def test_what_only_looks_like_keys_is_text(value: str) -> None:
    end = value.strip("|")
    base = f"a:\n  run: {value}\n    b:\n      x: 1{end}\n"
    ours, theirs = (base.replace(f"1{end}\n", f"1\n      {key}: 1{end}\n") for key in "yz")
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml")
    assert [conflict.place.at for conflict in merged.conflicts] == ["a.run"]


def test_a_conflict_far_inside_is_named_by_all_its_keys() -> None:
    base = "on: x\njobs:\n  # one\n  build: # two\n    'env':\n      A: 1\n      B: 1\n\n  test: 1\n"
    ours = base.replace("A: 1", "A: 2")
    theirs = base.replace("A: 1", "A: 3").replace("B: 1", "B: 4")
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml")
    assert [conflict.place.at for conflict in merged.conflicts] == ["jobs.build.env.A"]
    assert merged.partial == ours.replace("B: 1", "B: 4").encode()


def test_a_block_deleted_by_one_side_and_raised_by_the_other_is_gone() -> None:
    base = "jobs:\n  a:\n    uses: x@v1\n  b:\n    uses: x@v1\n"
    assert merged_text(base, "jobs:\n  a:\n    uses: x@v1\n", base.replace("v1", "v2")) == (
        "jobs:\n  a:\n    uses: x@v2\n"
    )


def test_a_block_that_may_have_been_renamed_is_contested_though_only_its_version_was_raised() -> None:
    base = "jobs:\n  a:\n    uses: x@v1\n  b: 1\n"
    merged = merge(
        base.encode(), base.replace("  a:", "  c:").encode(), base.replace("v1", "v2").encode(), path="a.yaml"
    )
    assert merged.outcome is MergeOutcome.CONFLICT


def test_a_key_both_sides_added_alike_keeps_the_comment_that_one_of_them_put_above_it() -> None:
    ours, theirs = "a: 1\nzone: x\nb: 1\n", "a: 1\n# of the server\nzone: x\nc: 2\n"
    assert merged_text("a: 1\n", ours, theirs) == "a: 1\n# of the server\nzone: x\nb: 1\nc: 2\n"


def test_a_block_that_one_side_removed_and_the_other_only_indented_is_gone() -> None:
    base = "a: 1\nbranches:\n  only:\n  - main\n"
    assert merged_text(base, "a: 2\n", base.replace("  - main", "    - main")) == "a: 2\n"


def test_blank_lines_that_one_side_removed_do_not_contest_what_the_other_wrote_there() -> None:
    assert merged_text("a: 1\n\n\n", "a: 2\n", "a: 1\n\n# the end\n") == "a: 2\n\n# the end\n"


@pytest.mark.parametrize("comment", ["v{}", "frozen: v{}", "tag={}", "pin@v{}"])
def test_of_two_pinned_revisions_the_one_of_the_higher_version_is_taken(comment: str) -> None:
    base, ours, theirs = (
        f"rev: {digit * 40}  # {comment.format(version)}\n"
        for digit, version in (("a", "1.2.0"), ("b", "1.3.0"), ("c", "1.10.0"))
    )
    assert merged_text(base, ours, theirs) == theirs


def test_elements_indented_anew_take_none_in_that_is_indented_as_before() -> None:
    base, ours = "run:\n    - a\n    - b\n", "run:\n    - a\n    - b\n    - c\n"
    merged = merge(base.encode(), ours.encode(), b"run:\n  - a\n  - b\n", path="a.yaml")
    assert merged.outcome is MergeOutcome.CONFLICT


def test_elements_that_set_one_variable_to_several_values_are_no_requirements() -> None:
    base = "env:\n  - DIR=a\n  - DIR=b\n"
    ours, theirs = (
        base.replace("  - DIR=a\n", "  - DIR=x\n  - DIR=a\n"),
        base.replace("  - DIR=a\n", "  - DIR=y\n  - DIR=a\n"),
    )
    assert merged_text(base, ours, theirs) == "env:\n  - DIR=x\n  - DIR=y\n  - DIR=a\n  - DIR=b\n"


def test_an_element_that_one_side_renamed_has_what_the_other_changed_in_it() -> None:
    base = "- name: use 3.12\n  uses: python\n  with: a\n- name: run\n  run: b\n"
    renamed, changed = base.replace("3.12", "3.13"), base.replace("with: a", "with: A")
    for sides in ((renamed, changed), (changed, renamed)):
        assert merged_text(base, *sides) == renamed.replace("with: a", "with: A")


def test_an_element_in_the_place_of_another_is_not_the_other_renamed() -> None:
    base = "- name: one\n  uses: a\n  with: b\n- name: run\n  run: b\n"
    ours, theirs = base.replace("one\n  uses: a\n  with: b", "two\n  run: c"), base.replace("with: b", "with: B")
    assert merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml").outcome is MergeOutcome.CONFLICT


def test_lists_that_both_sides_made_are_contested_but_one_that_was_there_has_both() -> None:
    base, ours, theirs = "a: 1\n", "a: 1\nlist:\n  - n\n", "a: 1\nlist:\n  - b\n"
    assert merge(base.encode(), ours.encode(), theirs.encode(), path="a.yaml").outcome is MergeOutcome.CONFLICT
    assert merged_text("list:\n  - m\n", "list:\n  - m\n  - n\n", "list:\n  - m\n  - b\n") == (
        "list:\n  - m\n  - n\n  - b\n"
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_neighbouring_elements_that_either_side_replaced_or_removed_are_merged_one_by_one(swapped: bool) -> None:
    base = "list:\n  - a\n  - b\n  - c\n  - d\n"
    ours, theirs = base.replace("  - a\n", ""), base.replace("- b\n  - c", "- x y\n  - z")
    sides = (theirs, ours) if swapped else (ours, theirs)
    assert merged_text(base, *sides) == "list:\n  - x y\n  - z\n  - d\n"
