import pytest

from contextbase.merge import MergeOutcome, PlaceKind, merge

BASE = """\
---
title: Guide
tags: [a]
---
# Guide

Some words.

## Install

- one
- two

| name | what |
|---|---|
| a | first |
| b | second |

[home]: https://example.com
"""


def merged_text(ours: str, theirs: str, base: str = BASE) -> str:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="guide.md")
    assert merged.outcome is MergeOutcome.MERGED, merged.conflicts
    assert merged.content is not None
    return merged.content.decode()


def test_the_front_matter_merges_by_key() -> None:
    text = merged_text(BASE.replace("title: Guide", "title: The guide"), BASE.replace("[a]", "[a, b]"))
    assert text.startswith("---\ntitle: The guide\ntags: [a, b]\n---\n")


def test_a_clean_line_merge_that_repeats_a_key_of_the_front_matter_does_not_stand() -> None:
    base = "---\na: 1\nb: 1\nc: 1\nd: 1\ne: 1\n---\ntext\n"
    ours, theirs = base.replace("a: 1\n", "a: 1\nnew: 1\n"), base.replace("e: 1\n", "e: 1\nnew: 1\n")
    assert merged_text(ours, theirs, base).count("new: 1") == 1


def test_list_items_both_sides_append_are_both_kept() -> None:
    text = merged_text(BASE.replace("- two\n", "- two\n- three\n"), BASE.replace("- two\n", "- two\n- four\n"))
    assert "- one\n- two\n- three\n- four\n\n|" in text


def test_list_items_both_sides_append_above_the_comment_that_ends_the_list_are_both_kept() -> None:
    base, ours, theirs, both = (
        "# People\n\n<!-- start -->\n - a\n - b\n" + "".join(f" - {name}\n" for name in names) + "<!-- end -->\n"
        for names in ("", "x", "y", "xy")
    )
    assert merge(base.encode(), ours.encode(), theirs.encode(), path="README.md").content == both.encode()


def test_entries_of_a_list_inside_a_list_are_entries_of_their_own() -> None:
    base, ours, theirs, both = (
        "# Parts\n\n- a\n  - b\n" + "".join(f"  - {name}\n" for name in names) + "- c\n"
        for names in ("", "x", "y", "xy")
    )
    assert merged_text(ours, theirs, base) == both


def test_table_rows_merge_by_their_first_column() -> None:
    ours = BASE.replace("| a | first |\n", "| a | 1st |\n").replace("second |\n", "second |\n| c | third |\n")
    theirs = BASE.replace("| b | second |", "| b | 2nd |")
    assert "| a | 1st |\n| b | 2nd |\n| c | third |\n" in merged_text(ours, theirs)


def contested_texts(ours: str, theirs: str, base: str = BASE) -> list[tuple[bytes | None, bytes | None]]:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="guide.md")
    return [(conflict.ours, conflict.theirs) for conflict in merged.conflicts]


@pytest.mark.parametrize("below", ["## Install", "[home]"])
def test_sections_both_sides_put_at_one_spot_are_contested(below: str) -> None:
    ours, theirs = (BASE.replace(below, new + below) for new in ("## Use\n\nText.\n\n", "## Help\n\nAsk.\n\n"))
    assert len(contested_texts(ours, theirs)) == 1


def test_a_section_put_next_to_one_that_the_other_side_removed_is_contested() -> None:
    base = "# Guide\n\n## Old\n\nWords.\n\n## Last\n\nMore.\n"
    ours = base.replace("## Last", "## New\n\nAbout the old.\n\n## Last")
    theirs = base.replace("## Old\n\nWords.\n\n", "")
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="guide.md")
    assert [(conflict.place.at, conflict.ours) for conflict in merged.conflicts] == [
        ("Guide > New", b"About the old.\n")
    ]


def test_rows_both_sides_put_at_one_spot_are_contested() -> None:
    last = "| b | second |\n"
    ours, theirs = BASE.replace(last, last + "| c | mine |\n"), BASE.replace(last, last + "| d | other |\n")
    assert contested_texts(ours, theirs) == [(b"| c | mine |\n", b"| d | other |\n")]


def test_a_table_whose_header_one_side_changed_is_contested() -> None:
    ours = BASE.replace("| a | first |", "| a | 1st |")
    table = BASE[BASE.index("|") : BASE.rindex("|") + 2]
    wider = "".join(f"{line[:-1]}  |\n" for line in table.splitlines())
    assert contested_texts(ours, BASE.replace(table, wider)) == [
        (table.replace("first", "1st").encode(), wider.encode())
    ]


def test_a_heading_inside_a_fence_is_code() -> None:
    base = "# A\n\n```\n# not a title\nmake\n```\n\n# B\n\nb\n"
    assert contested_texts(base.replace("make", "just"), base.replace("make", "ninja"), base) == [
        (b"```\n# not a title\njust\n```\n", b"```\n# not a title\nninja\n```\n")
    ]


def test_a_version_both_sides_raised_in_the_prose_is_settled() -> None:
    base = '# A\n\n```toml\nx = { version = "1.0.1" }\n```\n'
    assert merged_text(base.replace("1.0.1", "1.2.0"), base.replace("1.0.1", "1.0.2"), base) == base.replace(
        "1.0.1", "1.2.0"
    )


def test_a_line_of_prose_both_sides_changed_is_contested_by_its_heading() -> None:
    ours, theirs = BASE.replace("Some words", "Few words"), BASE.replace("Some words", "Some good words")
    merged = merge(BASE.encode(), ours.encode(), theirs.encode(), path="guide.md")
    (conflict,) = merged.conflicts
    assert (conflict.place.kind, conflict.place.at) == (PlaceKind.HEADING, "Guide")
    assert conflict.ours == b"Few words.\n"


def test_paragraphs_both_sides_insert_at_one_spot_are_contested() -> None:
    ours, theirs = (BASE.replace("Some words.\n", f"Some words.\n\n{more}\n") for more in ("Mine.", "Other."))
    assert merge(BASE.encode(), ours.encode(), theirs.encode(), path="guide.md").outcome is MergeOutcome.CONFLICT


def chapters(*entries: str, number: int = 15) -> str:
    """A long text with a list in the middle of it."""
    listed = "".join(f"- {entry}\n" for entry in entries)
    return "# Book\n\n" + "\n".join(
        f"## Chapter {chapter}\n\n### Words\n\n{listed if chapter == number else f'words of {chapter}'}\n"
        for chapter in range(30)
    )


def test_a_long_text_is_merged_whole_though_only_what_differs_is_read() -> None:
    merged = merged_text(chapters("one", "mine"), chapters("one", "other"), chapters("one"))
    assert merged == chapters("one", "mine", "other")


def test_a_conflict_in_a_long_text_is_found_below_all_its_headings() -> None:
    sides = (chapters(entry).encode() for entry in ("one thing", "one mine", "one other"))
    (conflict,) = merge(*sides, path="book.md").conflicts
    assert conflict.place.at == "Book > Chapter 15 > Words"


def test_beside_a_conflict_what_merges_by_line_stands() -> None:
    base = "# Guide\n\none\ntwo\nthree\nfour\nfive\n"
    ours = base.replace("one", "ONE").replace("five", "mine")
    theirs = base.replace("three", "THREE").replace("five", "other")
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="guide.md")
    assert merged.partial == ours.replace("three", "THREE").encode()


def test_text_like_the_front_matter_is_text() -> None:
    base = "---\ntitle: Guide\n---\ntitle: Guide\n\n# Part\n\none\n"
    ours, theirs = base.replace("one", "mine"), base.replace("one", "other").replace("---\n", "---\ntags: a\n", 1)
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path="guide.md")
    assert merged.strategy == "markdown"
    assert merged.partial == theirs.replace("other", "mine").encode()


def test_a_conflict_in_one_passage_is_named_by_all_headings_above_it() -> None:
    base = BASE.replace("[home]", "### Windows\n\nOne line.\n\n## Use\n\n[home]")
    merged = merge(
        base.encode(), base.replace("One", "Our").encode(), base.replace("One", "Their").encode(), path="a.md"
    )
    assert [conflict.place.at for conflict in merged.conflicts] == ["Guide > Install > Windows"]
