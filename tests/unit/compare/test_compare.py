import json

import pytest

from contextbase.compare import CompareLimits, DiffKind, DiffStatus, FileDiff, Side, ValueChangeKind, compare
from contextbase.ids import ContentHash
from contextbase.merge import EntryKind


def diff_of(old: bytes | None, new: bytes | None, path: str = "a.txt", limits: CompareLimits | None = None) -> FileDiff:
    sides = [None if content is None else Side.of(content) for content in (old, new)]
    return compare(*sides, path=path, limits=limits or CompareLimits())


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (None, b"a", DiffStatus.ADDED),
        (b"a", None, DiffStatus.REMOVED),
        (b"a", b"b", DiffStatus.CHANGED),
        (b"a", b"a", DiffStatus.UNCHANGED),
        (None, None, DiffStatus.UNCHANGED),
    ],
)
def test_what_became_of_a_file(old: bytes | None, new: bytes | None, status: DiffStatus) -> None:
    assert diff_of(old, new).status is status


def test_a_rename_is_what_the_caller_says_it_is() -> None:
    diff = compare(Side.of(b"a\n"), Side.of(b"b\n"), path="new.txt", old_path="old.txt")
    assert (diff.status, diff.old_path, diff.new_path, diff.path) == (
        DiffStatus.RENAMED,
        "old.txt",
        "new.txt",
        "new.txt",
    )
    assert diff.hunks


def test_a_mode_is_a_change_of_its_own() -> None:
    diff = compare(Side.of(b"a\n"), Side.of(b"a\n", executable=True), path="run.sh")
    assert diff.status is DiffStatus.CHANGED
    assert diff.mode_changed
    assert diff.kind is DiffKind.SAME


def test_a_file_that_became_a_link_has_no_line_in_common_with_it() -> None:
    diff = compare(Side.of(b"target"), Side.of(b"target", kind=EntryKind.SYMLINK), path="a")
    assert diff.kind_changed
    assert diff.hunks[0].lines == (b"-target", b"+target")


def test_links_and_folders_are_told_from_files() -> None:
    links = [Side.of(target, kind=EntryKind.SYMLINK) for target in (b"a", b"b")]
    assert compare(*links, path="link").kind is DiffKind.LINK
    assert compare(None, Side.folder(), path="folder").kind is DiffKind.FOLDER


def test_of_a_binary_size_hash_and_type_are_known() -> None:
    diff = diff_of(b"\0old", b"\0newer", "a.png")
    assert diff.kind is DiffKind.BINARY
    assert diff.new is not None
    assert (diff.new.size, diff.new.hash, diff.new.mime) == (6, ContentHash.of(b"\0newer"), "image/png")


def test_a_file_that_was_not_loaded_is_compared_by_its_hash() -> None:
    large = Side(content=None, size=1 << 40, hash=ContentHash.of(b"large"))
    diff = compare(Side.of(b"small"), large, path="a.txt")
    assert diff.kind is DiffKind.BINARY
    assert diff.notes == ("It is too large to show.",)


def test_of_sides_with_one_hash_the_bytes_are_not_asked_for() -> None:
    large = Side(content=None, size=1 << 40, hash=ContentHash.of(b"large"))
    assert compare(large, large, path="a.txt").status is DiffStatus.UNCHANGED
    renamed = compare(large, large, path="b.txt", old_path="a.txt")
    assert (renamed.status, renamed.kind, renamed.notes) == (DiffStatus.RENAMED, DiffKind.SAME, ())


def test_the_context_can_be_chosen() -> None:
    lines = [f"{number}\n".encode() for number in range(20)]
    limits = CompareLimits(context=1)
    diff = diff_of(b"".join(lines), b"".join([*lines[:10], b"new\n", *lines[11:]]), limits=limits)
    assert diff.hunks[0].lines == (b" 9\n", b"-10\n", b"+new\n", b" 11\n")


@pytest.mark.parametrize(
    ("old", "new", "path", "limits", "note"),
    [
        (b"{}", b'{"a": ', "a.json", CompareLimits(), "it is not valid JSON"),
        (b"a: 1", b"a: [", "a.yaml", CompareLimits(), "it is not valid YAML"),
        (b"a: 1", b"a: 1\na: 2", "a.yaml", CompareLimits(), "stands twice"),
        (b"a: 1", b"? [b]\n: 2", "a.yaml", CompareLimits(), "a key is not a plain value"),
        (b"a = 1", b"a = ", "a.toml", CompareLimits(), "it is not valid TOML"),
        (b"{}", b"[" * 300 + b"]" * 300, "a.json", CompareLimits(), "nested deeper"),
        (b"{}", b"[1]", "a.ipynb", CompareLimits(), "it has no list of cells"),
        (b"{}", b'{"a": "\xff"}', "a.json", CompareLimits(), "it is not valid UTF-8"),
        (b"{}", b'{"a": 1}', "a.json", CompareLimits(structured_bytes=4), "it is over"),
        (b"{}", b'{"a": 1}' + b" " * 20_000, "a.json", CompareLimits(seconds=-1), "there was no time left"),
    ],
)
def test_what_cannot_be_read_is_compared_as_text_and_a_note_says_why(
    old: bytes, new: bytes, path: str, limits: CompareLimits, note: str
) -> None:
    diff = diff_of(old, new, path, limits)
    assert diff.kind is DiffKind.TEXT
    assert diff.hunks
    assert note in diff.notes[0]


def test_text_over_the_limit_is_compared_by_its_hash() -> None:
    diff = diff_of(b"a\n" * 10, b"b\n" * 10, limits=CompareLimits(text_bytes=8))
    assert diff.kind is DiffKind.BINARY
    assert not diff.hunks


def test_utf_16_is_text() -> None:
    diff = diff_of("eins\nzwei\n".encode("utf-16"), "eins\ndrei\n".encode("utf-16"))
    assert diff.kind is DiffKind.TEXT
    assert diff.hunks[0].lines[1:] == (b"-zwei\n", b"+drei\n")


def test_cells_are_told_apart_by_their_id() -> None:
    def notebook(*cells: tuple[str, str, list[int]]) -> bytes:
        made = [{"id": name, "cell_type": "code", "source": [source], "outputs": out} for name, source, out in cells]
        return json.dumps({"cells": made, "metadata": {}}).encode()

    old = notebook(("a", "x = 1", []), ("b", "y = 2", []), ("c", "z = 3", []), ("d", "gone", []))
    new = notebook(("c", "z = 3", []), ("a", "x = 1", [7]), ("b", "y = 5", []), ("e", "new", []))
    diff = diff_of(old, new, "a.ipynb")
    assert diff.kind is DiffKind.NOTEBOOK
    found = {cell.cell: cell for cell in diff.cells}
    assert {name: cell.kind for name, cell in found.items()} == {
        "a": ValueChangeKind.CHANGED,
        "b": ValueChangeKind.CHANGED,
        "c": ValueChangeKind.MOVED,
        "d": ValueChangeKind.REMOVED,
        "e": ValueChangeKind.ADDED,
    }
    assert found["a"].outputs_changed
    assert not found["a"].hunks
    assert found["b"].hunks[0].lines == (b"-y = 2", b"+y = 5")
    assert not found["b"].outputs_changed
    assert (found["c"].old_position, found["c"].new_position) == (2, 0)
