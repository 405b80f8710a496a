"""Random edits, checkpoints in between, others at work: the project ends as what the agent saw, with theirs in it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.workspaces.test_workspaces import EDITS, trees
from tests.support.folder_model import Edit, FolderModel, with_folders, without
from tests.support.gate_world import mkdir, write
from tests.support.postgres import database_copy
from tests.support.snapshots import FOLDER, Link, Node, Script, Tree
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, read_tree, shown

from contextbase.db.database import DatabaseAddress
from contextbase.gate.model import ContentKind, RequestedChange
from contextbase.identity.levels import Level

HIDDEN = "d/ü"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_project_becomes_what_the_agent_saw(
    embedded_database_server: DatabaseAddress, provider: str, tmp_path: Path
) -> None:
    @given(
        tree=trees().map(lambda found: found[-1]),
        phases=st.lists(st.lists(EDITS, max_size=6), min_size=1, max_size=4),
        hides=st.booleans(),
    )
    @settings(max_examples=40)
    def check(tree: Tree, phases: list[list[Edit]], hides: bool) -> None:
        runner.run(_check(world, tree, phases, hides=hides))

    async def opened() -> WorkspaceWorld:
        address = await stack.enter_async_context(database_copy(embedded_database_server, "contextbase_template"))
        return await stack.enter_async_context(open_world(address, tmp_path, provider))

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            world = runner.run(opened())
            check()
        finally:
            runner.run(stack.aclose())


async def _check(world: WorkspaceWorld, tree: Tree, phases: list[list[Edit]], *, hides: bool) -> None:
    await world.new_project()
    hides = hides and tree.get(HIDDEN.partition("/")[0], FOLDER) is FOLDER
    if tree:
        await world.write(*(_change(path, node) for path, node in tree.items()))
    masked = (HIDDEN,) if hides else ()
    for path in masked:
        await world.rule(f"{path}/**", Level.HIDDEN)
        await world.rule(path, Level.HIDDEN)
    hidden = {path: node for path, node in tree.items() if path not in without(tree, masked)}
    root = await world.create("ann")
    model = FolderModel(with_folders(read_tree(root)), (root,))
    others: Tree = {}
    for number, edits in enumerate(phases):
        for edit in edits:
            model.apply(edit)
        others[f"theirs/{number}"] = b"%d" % number
        await world.put({f"theirs/{number}": b"%d" % number})
        if hides and _meets_what_is_hidden(model.tree):
            break
        if number < len(phases) - 1:
            await world.commit("ann")
            assert read_tree(root) == shown(model.tree)
            assert await world.tree() == shown({**model.tree, **hidden, **others})
    completed = await world.complete("ann")
    after = await world.tree()
    if hides and _meets_what_is_hidden(model.tree):
        assert completed.committed.refused
        kept = {path: node for path, node in after.items() if path not in without(after, masked)}
        assert kept == shown(hidden)
        folder = HIDDEN.partition("/")[0]
        # A rename to there is refused as a whole, and what was to be renamed stays; delete and create are two things.
        moved = {source for path, source in model.came_from.items() if not without({path: FOLDER}, (folder,))}
        elsewhere = (folder, *moved)
        wanted = shown({**without(model.tree, elsewhere), **dict.fromkeys(moved, b""), **others})
        assert without(after, elsewhere) == without(wanted, elsewhere)
        await world.complete("ann", discard=True)
    else:
        assert completed.is_removed, completed.kept_because
        assert after == shown({**model.tree, **hidden, **others})


def _meets_what_is_hidden(tree: Tree) -> bool:
    """The agent put something there, or in the place of the folder that it may be in: the gate takes neither."""
    folder = HIDDEN.partition("/")[0]
    return without(tree, (HIDDEN,)) != tree or tree.get(folder, FOLDER) is not FOLDER


def _change(path: str, node: Node) -> RequestedChange:
    if node is FOLDER:
        return mkdir(path, 0)
    if isinstance(node, Link):
        return write(path, node.target.encode(), 0, kind=ContentKind.SYMLINK)
    if isinstance(node, Script):
        return write(path, node.content, 0, executable=True)
    assert isinstance(node, bytes)
    return write(path, node, 0)
