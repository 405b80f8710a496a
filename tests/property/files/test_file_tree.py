"""A tree after changes is the tree that is built from what is there then."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from contextbase.files.file_tree import (
    Change,
    FileLeaf,
    FolderNode,
    Mark,
    built,
    changed,
    differences,
    filtered,
)
from contextbase.storage.model import Kind

PARTS = st.sampled_from("abc")
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
LEAVES = st.builds(
    FileLeaf,
    kind=st.just(Kind.FILE),
    size=st.integers(0, 9),
    modified_ns=st.integers(0, 9),
    mime=st.just("text/plain"),
    executable=st.booleans(),
    stamp=st.just(0),
)
Entries = dict[str, FileLeaf | None]
"""As a database has them: files, and folders that stand by themselves."""


@st.composite
def trees(draw: st.DrawFn) -> Entries:
    entries: Entries = {}
    for path in draw(st.lists(PATHS, max_size=12)):
        above = [path.rsplit("/", count)[0] for count in range(1, path.count("/") + 1)]
        is_free = not any(entries.get(folder) for folder in above)
        holds = any(other.startswith(f"{path}/") for other in entries)
        if is_free:
            entries[path] = None if holds or draw(st.booleans()) else draw(LEAVES)
    return entries


def flat(node: FolderNode) -> tuple[Entries, set[str]]:
    """What stands by itself, and all folders."""
    entries: Entries = {}
    folders = set()
    for path, folder in node.walk():
        folders.add(path)
        if folder.stands and path:
            entries[path] = None
        entries |= {f"{path}/{name}" if path else name: leaf for name, leaf in folder.files.items()}
    return entries, folders


@given(entries=trees())
def test_a_tree_holds_what_it_was_built_from(entries: Entries) -> None:
    node = built(entries.items())
    found, folders = flat(node)
    assert found == entries
    implied = {path.rsplit("/", count)[0] for path in entries for count in range(1, path.count("/") + 1)}
    assert folders == {""} | implied | {path for path, leaf in entries.items() if leaf is None}
    files = [leaf for leaf in entries.values() if leaf is not None]
    assert (node.sums.files, node.sums.folders) == (len(files), len(folders) - 1)
    assert node.sums.bytes == sum(leaf.size for leaf in files)
    assert node.sums.newest_ns == max((leaf.modified_ns for leaf in files), default=0)


@given(before=trees(), after=trees())
def test_changes_lead_from_one_tree_to_the_other(before: Entries, after: Entries) -> None:
    changes: dict[str, Change] = {
        path: (after[path] or Mark.STANDS) if path in after else Mark.LEFT
        for path in before.keys() | after.keys()
        if path not in after or path not in before or before[path] != after[path]
    }
    node = changed(built(before.items()), changes)
    assert flat(node) == flat(built(after.items()))
    assert node.sums == built(after.items()).sums


@given(entries=trees(), path=PATHS)
def test_what_is_gone_takes_all_below_along(entries: Entries, path: str) -> None:
    node = changed(built(entries.items()), {path: Mark.GONE})
    left = {place: leaf for place, leaf in entries.items() if place != path and not place.startswith(f"{path}/")}
    assert flat(node) == flat(built(left.items()))


@given(entries=trees(), source=PATHS)
def test_a_folder_can_be_put_elsewhere_as_a_whole(entries: Entries, source: str) -> None:
    node = built(entries.items())
    folder = node.folder(source)
    if folder is None:
        return
    moved = changed(node, {source: Mark.GONE, "elsewhere": folder})
    assert moved.folder("elsewhere") is folder
    assert moved.folder(source) is None
    assert moved.sums.files == node.sums.files


@given(entries=trees(), hidden=st.sets(PATHS, max_size=4))
def test_a_filtered_tree_is_built_from_what_is_shown(entries: Entries, hidden: set[str]) -> None:
    def shows(path: str) -> bool:
        return not any(path == place or path.startswith(f"{place}/") for place in hidden)

    node = built(entries.items())
    shown: Mapping[str, FileLeaf | None] = {path: leaf for path, leaf in entries.items() if shows(path)}
    assert flat(filtered(node, shows, lambda folder: folder in hidden)) == flat(built(shown.items()))
    assert flat(filtered(node, shows, lambda _: False)) == flat(built(shown.items()))
    assert filtered(node, lambda _: True, lambda _: False) is node


@given(before=trees(), after=trees())
def test_differences_are_every_path_that_differs_once(before: Entries, after: Entries) -> None:
    old, new = built(before.items()), built(after.items())
    found = list(differences(old, new))
    assert len({(path, type(was or now)) for path, was, now in found}) == len(found)
    files = {path: (was, now) for path, was, now in found if not isinstance(was or now, FolderNode)}
    (entries_before, folders_before), (entries_after, folders_after) = flat(old), flat(new)
    assert files == {
        path: (entries_before.get(path), entries_after.get(path))
        for path in entries_before.keys() | entries_after.keys()
        if entries_before.get(path) != entries_after.get(path)
    }
    folders = {path for path, was, now in found if isinstance(was or now, FolderNode)}
    emptied = {
        path
        for path in folders_before & folders_after
        if path and path not in before and not any(other.startswith(f"{path}/") for other in after)
    }
    assert folders == (folders_before ^ folders_after) | emptied
    assert not list(differences(old, old))
