"""A workspace of a folder: that folder is all there is, at the agent's side; the project has it where it always was."""

from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.snapshots import FOLDER
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import read_tree

from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.files.model import OperationContext
from contextbase.gate.model import ChangeStatus, RequestedChange
from contextbase.identity.levels import Level
from contextbase.ids import TreePath
from contextbase.search.model import ContentQuery, NameQuery
from contextbase.search.path_filter import PathFilter
from contextbase.search.pattern import TextPattern
from contextbase.workspaces.checkpoints import Committed, Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.refresh.plan import KeptReason

BOTH = b'{\n  "a": 1,\n  "b": 1\n}\n'
OTHERS = BOTH.replace(b'"a": 1', b'"a": 2')
MINE = BOTH.replace(b'"b": 1', b'"b": 2')
MERGED = OTHERS.replace(b'"b": 1', b'"b": 2')
START: dict[str, bytes | None] = {
    "docs/a.md": b"a\n",
    "docs/deep/b.md": b"b\n",
    "docs/list.json": BOTH,
    "docs.md": b"its name begins alike\n",
    "secret/key.txt": b"needle outside\n",
    "top.txt": b"needle at the top\n",
}
OUTSIDE = {
    "docs.md": b"its name begins alike\n",
    "secret/key.txt": b"needle outside\n",
    "top.txt": b"needle at the top\n",
}

MOVED = {"a.md": b"A", "a/c.md": b"c", "b2/1.md": b"x", "new": FOLDER}


def tree_of(folder: Path) -> dict[str, object]:
    """Without what is ours."""
    return {path: node for path, node in read_tree(folder).items() if not path.startswith(".contextbase")}


def told(committed: Committed) -> dict[str, ChangeStatus]:
    return {one.answered.answer.path: one.answered.answer.status for one in committed.changes}


async def test_the_folder_is_all_there_is_and_what_is_done_in_it_lands_where_it_belongs(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    assert tree_of(folder) == {"a.md": b"a\n", "deep/b.md": b"b\n", "list.json": BOTH}
    (folder / "a.md").write_bytes(b"A\n")
    (folder / "new").mkdir()
    (folder / "new" / "c.md").write_bytes(b"c\n")
    (folder / "deep").rename(folder / "deeper")
    assert await world.status("ann") == {"a.md", "new/c.md", "deeper/b.md"}
    files, _ = await world.agents.workspaces.diff(await world.agent("ann"), NamedWorkspace(world.project_id))
    assert {file.path for file in files} == {"a.md", "new/c.md", "deeper/b.md"}
    committed = await world.commit("ann")
    assert set(told(committed).values()) == {ChangeStatus.WRITTEN}
    assert set(told(committed)) == {"a.md", "new/c.md", "deep/b.md"}
    assert await world.status("ann") == set()
    (folder / "a.md").write_bytes(b"AA\n")
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == OUTSIDE | {
        "docs/a.md": b"AA\n",
        "docs/deeper/b.md": b"b\n",
        "docs/list.json": BOTH,
        "docs/new/c.md": b"c\n",
    }


async def test_deleting_everything_in_it_deletes_nothing_beside_it(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    for name in ("a.md", "deep/b.md", "list.json"):
        (folder / name).unlink()
    (folder / "deep").rmdir()
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == OUTSIDE


async def test_a_link_that_leads_outside_leads_nowhere_in_the_project(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    assert not (folder / ".." / "top.txt").exists()
    assert not (folder / ".." / "secret").exists()
    (folder / "link").symlink_to("../top.txt")
    place = world.agents.files.workspace(await world.agent("ann"), NamedWorkspace(world.project_id))
    with pytest.raises((InvalidInput, NotFound, Conflict)):
        await place.details(TreePath("link/x"))
    assert (await world.complete("ann")).is_removed
    assert (await world.tree()).keys() == {*START, "docs/link"}


async def test_a_token_for_the_folder_fits_and_one_for_another_does_not(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    (folder / "a.md").write_bytes(b"A\n")
    narrow, other = await world.narrow_token("ann", "docs"), await world.narrow_token("ann", "secret")
    record, committed = await world.agents.workspaces.commit(narrow, NamedWorkspace(world.project_id), wish=Wish())
    assert (record.folder, set(told(committed))) == ("docs", {"a.md"})
    with pytest.raises(Forbidden):
        await world.agents.workspaces.status(other, NamedWorkspace(world.project_id))
    await world.complete("ann")
    created = await world.agents.workspaces.create(narrow, world.project_id, folder=TreePath("docs/deep"))
    assert tree_of(created.record.path) == {"b.md": b"b\n"}
    await world.agents.workspaces.abandon(narrow, NamedWorkspace(world.project_id))
    with pytest.raises(NotFound):
        await world.agents.workspaces.create(narrow, world.project_id, folder=TreePath("secret"))


async def test_a_hidden_folder_and_one_that_may_not_be_made_are_refused_alike(world: WorkspaceWorld) -> None:
    await world.put(START)
    await world.rule("secret/**", Level.HIDDEN)
    await world.rule("nothing/**", Level.HIDDEN)
    await world.rule("closed/**", Level.READ)
    for name in ("secret", "nothing", "closed"):
        for _ in range(2):  # from the database, and from memory
            with pytest.raises(NotFound):
                await world.create("ann", of=name)
    with pytest.raises(InvalidInput):
        await world.create("ann", of="top.txt")


async def test_a_folder_that_is_not_there_yet_is_made_by_what_is_put_into_it(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="plans/2027")
    assert tree_of(folder) == {}
    assert await world.status("ann") == set()
    (folder / "first.md").write_bytes(b"1\n")
    await world.commit("ann")
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == START | {"plans/2027/first.md": b"1\n"}


async def test_an_agent_with_a_workspace_gets_no_other_of_another_folder(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    assert await world.create("ann", of="docs") == folder == await world.create("ann")
    with pytest.raises(Conflict):
        await world.create("ann", of="secret")


async def test_what_is_hidden_in_it_stays_hidden_and_narrowing_closes_it(world: WorkspaceWorld) -> None:
    await world.put(START)
    await world.rule("docs/deep/**", Level.HIDDEN)
    folder = await world.create("ann", of="docs")
    assert tree_of(folder) == {"a.md": b"a\n", "list.json": BOTH}
    (folder / "deep").mkdir()
    (folder / "deep" / "b.md").write_bytes(b"a guess\n")
    assert told(await world.commit("ann")) == {"deep/b.md": ChangeStatus.REFUSED}
    assert (folder / ".contextbase" / "refused").is_dir()
    assert (await world.tree())["docs/deep/b.md"] == b"b\n"
    await world.rule("docs/**", Level.HIDDEN)
    with pytest.raises(Forbidden):
        await world.status("ann")


async def test_a_refresh_brings_what_changed_in_the_folder_and_nothing_else(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    (folder / "list.json").write_bytes(MINE)
    await world.put({"docs/list.json": OTHERS, "docs/a.md": None, "docs/new/n.md": b"n\n", "top.txt": b"other\n"})
    await world.write(mkdir("docs/empty", await world.head()))
    refreshed = await world.refresh("ann")
    assert {f"{one.kind} {one.path}" for one in refreshed.arrived} == {
        "deleted a.md",
        "created new/n.md",
        "created empty",
    }
    assert (refreshed.merged, refreshed.kept) == (["list.json"], [])
    assert (folder / "list.json").read_bytes() == MERGED
    assert not (folder / "top.txt").exists()
    assert await world.status("ann") == {"list.json"}
    assert (await world.complete("ann")).is_removed
    assert (await world.tree())["docs/list.json"] == MERGED


async def test_when_others_rename_the_folder_work_goes_to_where_its_files_are_now(world: WorkspaceWorld) -> None:
    await world.put(START)
    folder = await world.create("ann", of="docs")
    (folder / "list.json").write_bytes(MINE)
    (folder / "fresh.md").write_bytes(b"fresh\n")
    head = await world.head()
    await world.write(
        *(rename(f"docs/{name}", f"handbook/{name}", head) for name in ("a.md", "deep/b.md", "list.json"))
    )
    await world.put({"handbook/list.json": OTHERS})
    refreshed = await world.refresh("ann")
    assert {one.path: one.reason for one in refreshed.kept} == {"list.json": KeptReason.DELETED_BY_OTHERS}
    assert tree_of(folder) == {"list.json": MINE, "fresh.md": b"fresh\n"}
    await world.commit("ann")
    assert tree_of(folder) == {"fresh.md": b"fresh\n"}
    assert await world.status("ann") == set()
    assert (await world.complete("ann")).is_removed
    tree = await world.tree()
    assert tree == OUTSIDE | {
        "handbook/a.md": b"a\n",
        "handbook/deep/b.md": b"b\n",
        "handbook/list.json": MERGED,
        "docs/fresh.md": b"fresh\n",
    }


async def test_when_a_file_takes_the_place_of_the_folder_no_work_is_lost(world: WorkspaceWorld) -> None:
    await world.put({"docs/a.md": b"a\n", "top.txt": b"t\n"})
    folder = await world.create("ann", of="docs")
    (folder / "own.md").write_bytes(b"own\n")
    await world.put({"docs/a.md": None})
    await world.write(write("docs", b"a file now\n", await world.head()))
    await world.refresh("ann")
    assert told(await world.commit("ann")) == {"own.md": ChangeStatus.IN_REVIEW}  # with all three sides
    assert (folder / "own.md").read_bytes() == b"own\n"


async def test_search_and_the_file_service_name_paths_as_the_folder_does(world: WorkspaceWorld) -> None:
    await world.put(START | {"docs/x/find.md": b"needle inside\n", "docs/y.txt": b"needle y\n"})
    folder = await world.create("ann", of="docs")
    (folder / "mine.md").write_bytes(b"needle mine\n")
    caller, search = await world.agent("ann"), world.agents.workspace_search
    pattern = TextPattern(text="needle")
    found, cursor = [], None
    while True:
        page = await search.contents(
            caller, NamedWorkspace(world.project_id), ContentQuery(pattern=pattern), cursor=cursor, limit=1
        )
        found += [file.path for file in page.files]
        if (cursor := page.cursor) is None:
            break
    assert found == ["mine.md", "x/find.md", "y.txt"]
    for below, globs, expected in (("x", (), ["x/find.md"]), (None, ("*.md",), ["mine.md", "x/find.md"])):
        files = PathFilter.parse(None if below is None else TreePath(below), globs)
        page = await search.contents(
            caller, NamedWorkspace(world.project_id), ContentQuery(pattern=pattern, files=files)
        )
        assert [file.path for file in page.files] == expected
    names = await search.names(caller, NamedWorkspace(world.project_id), NameQuery(words="docs"))
    assert names.paths == ()
    names = await search.names(caller, NamedWorkspace(world.project_id), NameQuery(words="find"))
    assert names.paths == ("x/find.md",)
    place = world.agents.files.workspace(caller, NamedWorkspace(world.project_id))
    tree = await place.tree()
    assert (set(tree.files), set(tree.folders)) == ({"a.md", "list.json", "mine.md", "y.txt"}, {"deep", "x"})
    synced = await place.sync(OperationContext())
    assert [one.path for one in synced.registered] == ["mine.md"]
    await place.rename(TreePath("a.md"), TreePath("b.md"), OperationContext())
    history = await place.history(TreePath("b.md"), before=None, limit=10)
    assert [(one.previous_path, one.path) for one in history.operations] == [("a.md", "b.md")]
    async with world.services.database.connection() as connection:
        audited = await connection.fetchrow("SELECT path, details FROM audit WHERE action = 'file.rename'")
    assert audited["path"] == "docs/a.md"
    assert "docs/b.md" in audited["details"]


async def test_each_snapshot_of_a_small_folder_is_what_the_project_has_in_it(world: WorkspaceWorld) -> None:
    """Its layers are its own, so whatever comes into it and leaves it has to be seen from there."""
    first = {"docs/a.md": b"a", "docs/b/c.md": b"c", "docs.md": b"beside"}
    await world.put({f"many/{number}.md": b"x" for number in range(40)} | first)
    steps: list[tuple[list[RequestedChange], dict[str, object]]] = [
        ([], {"a.md": b"a", "b/c.md": b"c"}),
        ([write("docs/a.md", b"A", 1)], {"a.md": b"A", "b/c.md": b"c"}),
        ([rename("docs/b/c.md", "elsewhere/c.md", 2)], {"a.md": b"A"}),
        ([rename("many/1.md", "docs/b/1.md", 3), mkdir("docs/new", 3)], {"a.md": b"A", "b/1.md": b"x", "new": FOLDER}),
        ([write("many/2.md", b"y", 4)], {"a.md": b"A", "b/1.md": b"x", "new": FOLDER}),
        ([rename("docs/b/1.md", "docs/b2/1.md", 5), rename("elsewhere/c.md", "docs/a/c.md", 5)], MOVED),
        ([delete(path, 6) for path in ("docs/a.md", "docs/b2/1.md", "docs/a/c.md", "docs/new")], {}),
        ([write("docs/b2/1.md", b"again", 7)], {"b2/1.md": b"again"}),
    ]
    for changes, expected in steps:
        if changes:
            await world.write(*changes)
        assert tree_of(await world.create("ann", of="docs")) == expected
        assert (await world.complete("ann")).is_removed
    (mirror,) = world.agents.workspaces.node.root.glob("mirror/*/*")
    assert list((mirror / "layers").iterdir()) == []
