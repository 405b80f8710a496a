from contextbase.merge import Outcome, PlaceKind, merge

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
    assert merged.outcome is Outcome.MERGED, merged.conflicts
    assert merged.content is not None
    return merged.content.decode()


def with_entries(*entries: str, base: str = BASE) -> str:
    return base.replace("- A thing (#10)\n", "- A thing (#10)\n" + "".join(f"- {entry}\n" for entry in entries))


def test_entries_of_both_sides_are_kept_once_ours_first() -> None:
    text = merged_text(with_entries("Shared", "Mine"), with_entries("Shared", "Other"))
    assert text == with_entries("Shared", "Mine", "Other")


def test_entries_in_order_of_their_tickets_stay_in_order() -> None:
    assert merged_text(with_entries("Mine (#14)"), with_entries("Other (#12)")) == with_entries(
        "Other (#12)", "Mine (#14)"
    )


def test_versions_stay_newest_first_whichever_side_has_the_newer() -> None:
    older = BASE.replace("## [1.1.0]", "## [1.1.1] - 2024-03-01\n\n- Fix\n\n## [1.1.0]")
    newer = BASE.replace("## [1.1.0]", "## [2.0.0] - 2024-04-01\n\n- Break\n\n## [1.1.0]")
    both = older.replace("## [1.1.1]", "## [2.0.0] - 2024-04-01\n\n- Break\n\n## [1.1.1]")
    assert merged_text(older, newer) == both
    assert merged_text(newer, older) == both


def test_a_release_date_both_sides_set_differently_is_contested() -> None:
    ours, theirs = BASE.replace("2024-02-01", "2024-02-02"), BASE.replace("2024-02-01", "2024-02-03")
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="CHANGELOG.md")
    (conflict,) = merged.conflicts
    assert conflict.place.kind is PlaceKind.HEADING
    assert "1.1.0" in conflict.place.at


def test_underlined_titles_are_sections_too() -> None:
    base = "Changes\n=======\n\n1.0\n---\n\n* a\n\n0.9\n---\n\n* z\n"
    ours, theirs = base.replace("* a\n", "* a\n* b\n"), base.replace("* a\n", "* a\n* c\n")
    assert merged_text(ours, theirs, base) == base.replace("* a\n", "* a\n* b\n* c\n")
