"""Random trees, random edits: overlay and copy find what a plain model says, and it leads to what the agent saw."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.folder_model import Edit, FolderModel, with_folders, without
from tests.support.snapshots import FOLDER, Link, MemorySnapshots, Node, Script, Tree
from tests.support.workspaces import described, open_site, read_tree, shown

from contextbase.workspaces.model import Workspace, WorkspaceChanges

NAMES = st.sampled_from(["a", "b.txt", ".c", "d", "ü"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from([b"", b"one\n", b"two\n", b"\x00\xff" * 10])
NODES = st.one_of(
    CONTENTS, CONTENTS.map(Script), st.sampled_from([Link("a"), Link("../.."), Link("x//y/")]), st.just(FOLDER)
)
VERBS = [
    *("write", "save", "unlink", "chmod", "link", "mkdir", "rmtree", "remake", "rename", "copy_folder"),
    *("rename_folder", "swap_folders"),
]
EDITS = st.tuples(st.sampled_from(VERBS), st.integers(0, 200), st.integers(0, 200), CONTENTS)


@st.composite
def trees(draw: st.DrawFn) -> list[Tree]:
    """Snapshots that follow each other."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        tree: Tree = {}
        for path, node in draw(st.dictionaries(PATHS, NODES, max_size=8)).items():
            if _fits(tree, path, node):
                tree[path] = node
        found.append(tree)
    return found


def _fits(tree: Tree, path: str, node: Node) -> bool:
    above = [path[:at] for at, character in enumerate(path) if character == "/"]
    below = any(other.startswith(f"{path}/") for other in tree)
    return all(tree.get(folder, FOLDER) is FOLDER for folder in above) and (node is FOLDER or not below)


@given(trees=trees(), masked=st.sets(PATHS, max_size=2), edits=st.lists(EDITS, max_size=12))
@settings(max_examples=80)
def test_overlay_and_copy_find_what_a_plain_model_says(trees: list[Tree], masked: set[str], edits: list[Edit]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_check(Path(folder), trees, masked, edits))


async def _check(folder: Path, trees: list[Tree], masked: set[str], edits: list[Edit]) -> None:
    snapshots = MemorySnapshots(trees=[{}, *trees])
    given = with_folders(trees[-1])
    hidden = tuple(path for path in masked if path in given and without({path: given[path]}, masked - {path}))
    hidden_nodes = {path: node for path, node in trees[-1].items() if path not in without(trees[-1], hidden)}
    async with (
        open_site(folder, "overlay", snapshots=snapshots) as overlay,
        open_site(folder, "copy", snapshots=snapshots) as copy,
    ):
        for seq in range(1, len(trees)):
            await overlay.provider.sync_lower(snapshots.key(seq))
        places = [(site, await site.create(masked=hidden)) for site in (overlay, copy)]
        model = FolderModel(without(given, hidden), tuple(workspace.path for _, workspace in places))
        for edit in edits:
            model.apply(edit)
        for site, workspace in places:
            found = await site.detect(workspace)
            assert read_tree(workspace.path) == shown(model.tree)
            assert found.reported == ()
            assert {described(change) for change in found.changes} == model.changes(), site.provider.name
            assert {(move.source, move.target) for move in found.moved} == model.moves(), site.provider.name
            if without(model.tree, hidden) == model.tree:  # who writes to a hidden path is refused: the gate's business
                committed = _committed(trees[-1], found, workspace)
                assert shown(committed) == shown({**model.tree, **hidden_nodes})


def _committed(tree: Tree, found: WorkspaceChanges, workspace: Workspace) -> Tree:
    """The snapshot after these changes; contents come from the folder."""
    after = dict(tree)
    files = read_tree(workspace.path)
    for change in found.changes:
        if change.renamed_from is not None:
            del after[change.renamed_from]
    for change in found.changes:
        if change.content is None:
            after.pop(change.path, None)
        else:
            after[change.path] = files[change.path]
    return after
