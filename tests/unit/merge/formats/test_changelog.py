import pytest

from contextbase.merge import MergeOutcome, PlaceKind, merge
from contextbase.merge.budget import Budget
from contextbase.merge.formats.headings import find_headings

BASE = """\
# Changelog

## [Unreleased]

### Added

- A thing (#10)

## [1.1.0] - 2024-02-01

- Old (#5)

## [1.0.0] - 2024-01-01

- First (#1)
"""


def merged_text(ours: str, theirs: str, base: str = BASE) -> str:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md")
    assert merged.outcome is MergeOutcome.MERGED, merged.conflicts
    assert merged.content is not None
    return merged.content.decode()


def with_entries(*entries: str, base: str = BASE) -> str:
    return base.replace("- A thing (#10)\n", "- A thing (#10)\n" + "".join(f"- {entry}\n" for entry in entries))


def test_entries_of_both_sides_are_kept_once_ours_first() -> None:
    text = merged_text(with_entries("Shared", "Mine"), with_entries("Shared", "Other"))
    assert text == with_entries("Shared", "Mine", "Other")


def test_entries_in_order_of_their_tickets_stay_in_order() -> None:
    entries = ["More (#11)", "Most (#12)", "All (#13)"]
    base = with_entries(*entries)
    ours, theirs = (with_entries(*entries, last) for last in ("Mine (#15)", "Other (#14)"))
    assert merged_text(ours, theirs, base) == with_entries(*entries, "Other (#14)", "Mine (#15)")


def test_three_entries_may_be_in_order_by_chance() -> None:
    entries = ["More (#11)", "Most (#12)"]
    base = with_entries(*entries)
    ours, theirs = (with_entries(*entries, last) for last in ("Mine (#15)", "Other (#14)"))
    assert merged_text(ours, theirs, base) == with_entries(*entries, "Mine (#15)", "Other (#14)")


def test_entries_in_no_order_are_kept_ours_first() -> None:
    base, ours, theirs, both = (
        with_entries("Less (#8)", *last)
        for last in ([], ["Mine (#14)"], ["Other (#12)"], ["Mine (#14)", "Other (#12)"])
    )
    assert merged_text(ours, theirs, base) == both


def test_what_one_side_put_below_an_entry_stands_before_the_entries_that_the_other_added() -> None:
    ours, theirs = (
        with_entries().replace("- A thing (#10)\n", "- A thing (#10)\n  - in detail\n"),
        with_entries("Other"),
    )
    assert merged_text(ours, theirs) == ours.replace("  - in detail\n", "  - in detail\n- Other\n")


def test_what_is_indented_below_an_entry_is_a_part_of_it() -> None:
    base = "# Changelog\n\n* Old.\n\n  *Jo*\n\n## 1.0\n\n* First.\n"
    mine, other = "* Mine.\n\n  In detail.\n\n  *Ann*\n\n", "* Other.\n\n  *Ann*\n\n"
    ours, theirs, both = (base.replace("* Old", added + "* Old") for added in (mine, other, mine + other))
    assert merged_text(ours, theirs, base) == both


def with_definitions(*labels: str) -> str:
    return with_entries() + "\n" + "".join(f"[{label}]: https://example.org/{label}\n" for label in labels)


def test_definitions_of_tickets_that_both_sides_put_at_one_spot_are_both_kept() -> None:
    base, ours, theirs = with_definitions("#1"), with_definitions("#1", "#14"), with_definitions("#1", "#12", "#13")
    assert merged_text(ours, theirs, base) == with_definitions("#1", "#14", "#12", "#13")


def test_other_definitions_that_both_sides_put_at_one_spot_are_contested() -> None:
    sides = with_definitions("#1"), with_definitions("#1", "#14"), with_definitions("#1", "guide")
    base, ours, theirs = (side.encode() for side in sides)
    assert merge(base, ours, theirs, path="CHANGELOG.md").outcome is MergeOutcome.CONFLICT


def test_an_entry_next_to_one_the_other_side_reworded_is_contested() -> None:
    ours, theirs = with_entries("Mine"), BASE.replace("- A thing (#10)", "- A good thing (#10)")
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md")
    assert merged.outcome is MergeOutcome.CONFLICT


def test_what_comes_next_under_two_versions_is_contested() -> None:
    ours, theirs = (
        BASE.replace("## [1.1.0]", f"## [{version}] - unreleased\n\n- {version}\n\n## [1.1.0]")
        for version in ("1.1.1", "1.2.0")
    )
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md")
    assert [(conflict.ours, conflict.theirs) for conflict in merged.conflicts] == [(b"- 1.1.1\n", b"- 1.2.0\n")]
    released = ours.replace("1.1.1] - unreleased", "1.1.1] - 2024-03-01")
    assert "1.2.0] - unreleased" in merged_text(released, theirs)


def test_a_release_and_the_unreleased_entries_it_was_made_of_are_contested() -> None:
    base = "# Changelog\n\n## 1.0.0\n\n- First\n"
    ours = base.replace("## 1.0.0", "## 1.1.0\n\n- A new thing to use\n\n## 1.0.0")
    theirs = base.replace("## 1.0.0", "## Unreleased\n\n- A new thing to use\n- Another one\n\n## 1.0.0")
    assert merge(base.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md").outcome is MergeOutcome.CONFLICT
    other = theirs.replace("- A new thing to use\n", "")
    assert merged_text(ours, other, base).count("\n- ") == 3


def test_of_releases_only_the_newest_keeps_the_entries_of_both_sides() -> None:
    def with_entry(entry: str, *, below: str) -> str:
        return BASE.replace(below, f"{below}- {entry}\n")

    newest, older = "- Old (#5)\n", "- First (#1)\n"
    text = merged_text(with_entry("Mine", below=newest), with_entry("Other", below=newest))
    assert text == BASE.replace(newest, f"{newest}- Mine\n- Other\n")
    sides = (with_entry(entry, below=older).encode() for entry in ("Mine", "Other"))
    (conflict,) = merge(BASE.encode(), *sides, path="CHANGELOG.md").conflicts
    assert (conflict.ours, conflict.theirs) == (b"- Mine\n", b"- Other\n")


def test_paragraphs_under_a_title_both_sides_made_are_contested() -> None:
    ours, theirs = (
        BASE.replace("## [1.1.0]", f"## [1.2.0]\n\n{words}\n\n- {words}\n\n## [1.1.0]") for words in ("Mine", "Other")
    )
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md")
    assert merged.outcome is MergeOutcome.CONFLICT


def test_versions_stay_newest_first_whichever_side_has_the_newer() -> None:
    older = BASE.replace("## [1.1.0]", "## [1.1.1] - 2024-03-01\n\n- Fix\n\n## [1.1.0]")
    newer = BASE.replace("## [1.1.0]", "## [2.0.0] - 2024-04-01\n\n- Break\n\n## [1.1.0]")
    both = older.replace("## [1.1.1]", "## [2.0.0] - 2024-04-01\n\n- Break\n\n## [1.1.1]")
    assert merged_text(older, newer) == both
    assert merged_text(newer, older) == both


def test_a_release_date_both_sides_set_differently_is_contested_and_shown_as_ours_has_it() -> None:
    ours, theirs = BASE.replace("2024-02-01", "2024-02-02"), BASE.replace("2024-02-01", "2024-02-03")
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md")
    (conflict,) = merged.conflicts
    assert conflict.place.kind is PlaceKind.HEADING
    assert conflict.place.at == "Changelog > [1.1.0] - 2024-02-02"


def test_underlined_titles_are_sections_too() -> None:
    base = "Changes\n=======\n\n1.0\n---\n\n* a\n\n0.9\n---\n\n* z\n"
    ours, theirs = base.replace("* a\n", "* a\n* b\n"), base.replace("* a\n", "* a\n* c\n")
    assert merged_text(ours, theirs, base) == base.replace("* a\n", "* a\n* b\n* c\n")


UPCOMING = "# Changes\n\n## Unreleased\n\n- a\n- b\n- c\n"


@pytest.mark.parametrize("label", [".. _v{}:\n\n", '<a name="v{}"></a>\n\n'])
def test_a_label_stays_above_the_title_it_names(label: str) -> None:
    def release(number: str) -> str:
        return f"{label.format(number)}{number}\n=====\n\n- Change {number}\n\n"

    start = "History\n#######\n\nAll changes.\n\n"
    old = release("1.1.0") + release("1.0.0")
    text = merged_text(start + release("2.0.0") + old, start + release("1.1.1") + old, start + old)
    assert text == start + release("2.0.0") + release("1.1.1") + old


def with_underlined_titles(numbers: str, underline: str) -> str:
    return "\n".join(f"v{number}\n{underline}\n\nChange {number}\n" for number in numbers.split())


@pytest.mark.parametrize("underline", "=-~`:._")
def test_a_title_may_be_underlined_in_many_ways(underline: str) -> None:
    base, ours, theirs, both = (
        with_underlined_titles(numbers, underline * 4)
        for numbers in ("1.1 1.0 0.9", "2.0 1.1 1.0 0.9", "1.2 1.1 1.0 0.9", "2.0 1.2 1.1 1.0 0.9")
    )
    assert merged_text(ours, theirs, base) == merged_text(theirs, ours, base) == both


def test_dots_that_are_shorter_than_the_line_above_are_no_underline() -> None:
    text = with_underlined_titles("1.1", "...")
    assert list(find_headings(text, Budget(1), underlined="=-.")) == []
    assert [heading.title for heading in find_headings(text.replace("...", "...."), Budget(1), underlined="=-.")] == [
        "v1.1"
    ]


def test_entries_stay_under_a_title_that_one_side_changed() -> None:
    released = UPCOMING.replace("Unreleased", "1.1.0")
    assert merged_text(released + "- mine\n", UPCOMING + "- other\n", UPCOMING) == released + "- mine\n- other\n"


def test_paragraphs_under_a_title_that_both_sides_made_alike_are_contested() -> None:
    base = UPCOMING.replace("\n- ", "\n\n- ")
    released = base.replace("Unreleased", "1.1.0")
    sides = (side.encode() for side in (base, released + "\nmine\n", released + "\nother\n"))
    assert merge(*sides, path="CHANGELOG.md").outcome is MergeOutcome.CONFLICT
