"""Random trees, random edits: the tree that is put together for a workspace is the one its programs see."""

import asyncio
import os
import stat
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.workspaces.test_workspaces import EDITS, PATHS, trees
from tests.support.folder_model import Edit, FolderModel, with_folders, without
from tests.support.snapshots import FOLDER, Link, MemorySnapshots, Script, Tree
from tests.support.workspaces import open_site

from contextbase.files.file_tree import FileLeaf, FolderNode, built
from contextbase.files.workspace_tree import one_folder, whole_tree
from contextbase.storage.model import Kind


@given(trees=trees(), masked=st.sets(PATHS, max_size=2), edits=st.lists(EDITS, max_size=12))
@settings(max_examples=60)
def test_the_tree_of_a_workspace_is_what_stands_in_its_folder(
    trees: list[Tree], masked: set[str], edits: list[Edit]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_check(Path(folder), trees, masked, edits))


async def _check(folder: Path, trees: list[Tree], masked: set[str], edits: list[Edit]) -> None:
    snapshots = MemorySnapshots(trees=[{}, *trees])
    given = with_folders(trees[-1])
    hidden = tuple(path for path in masked if path in given and without({path: given[path]}, masked - {path}))
    index = built((path, _leaf(node)) for path, node in without(given, hidden).items())
    async with (
        open_site(folder, "overlay", snapshots=snapshots) as overlay,
        open_site(folder, "copy", snapshots=snapshots) as copy,
    ):
        places = [(site, await site.create(masked=hidden)) for site in (overlay, copy)]
        model = FolderModel(without(given, hidden), tuple(workspace.path for _, workspace in places))
        for edit in edits:
            model.apply(edit)
        for site, workspace in places:
            tree = whole_tree(index, await site.provider.scan_folders(workspace.id))
            assert _described(tree) == _walked(workspace.path), site.provider.name
            for path, node in tree.walk():
                found = one_folder(index, await site.provider.scan_folder(workspace.id, path))
                assert found is not None
                assert found.folders.keys() == node.folders.keys()
                assert found.files == node.files


def _leaf(node: object) -> FileLeaf | None:
    if node is FOLDER:
        return None
    if isinstance(node, Link):
        return FileLeaf(Kind.SYMLINK, len(os.fsencode(node.target)), 1)
    content = node.content if isinstance(node, Script) else node
    assert isinstance(content, bytes)
    return FileLeaf(Kind.FILE, len(content), 1)


def _described(tree: FolderNode) -> dict[str, object]:
    found: dict[str, object] = {path: "folder" for path, _ in tree.walk() if path}
    for path, folder in tree.walk():
        found |= {f"{path}/{name}" if path else name: (leaf.kind, leaf.size) for name, leaf in folder.files.items()}
    return found


def _walked(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(parent, name)
            status = path.lstat()
            place = str(path.relative_to(folder))
            if stat.S_ISDIR(status.st_mode):
                found[place] = "folder"
            else:
                kind = Kind.SYMLINK if stat.S_ISLNK(status.st_mode) else Kind.FILE
                found[place] = (kind, status.st_size)
    return found
