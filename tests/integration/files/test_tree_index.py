"""The index in memory shows each caller what reading the snapshot itself does, and nothing else."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world

from contextbase.db.database import DatabaseAddress
from contextbase.errors import InvalidInput, NotFound
from contextbase.files import tree_index
from contextbase.files.file_tree import FolderNode
from contextbase.files.model import OperationContext
from contextbase.gate.model import CommitRequest, RequestedChange
from contextbase.identity.levels import Level
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind


@pytest.fixture
async def project(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", "copy") as world,
    ):
        yield world


async def commit(world: WorkspaceWorld, *changes: RequestedChange) -> None:
    """Whatever comes of it."""
    await world.services.gate.commit(world.owner, CommitRequest(project_id=world.project_id, changes=changes))


async def indexed(world: WorkspaceWorld, caller: Caller, seq: Seq | None) -> dict[str, object]:
    tree = await world.agents.files.project(caller, world.project_id, seq).tree()
    return entries_of(tree)


def entries_of(tree: FolderNode) -> dict[str, object]:
    found: dict[str, object] = {path: "folder" for path, folder in tree.walk() if path and folder.stands}
    for path, folder in tree.walk():
        found |= {
            f"{path}/{name}" if path else name: (leaf.kind, leaf.size, leaf.mime, leaf.executable)
            for name, leaf in folder.files.items()
        }
    return found


async def read(world: WorkspaceWorld, caller: Caller, seq: Seq | None) -> dict[str, object]:
    page = await world.services.reads.below(caller, world.project_id, None, seq=seq, contents=False, limit=10_000)
    return {
        str(entry.path): "folder"
        if entry.kind is Kind.DIRECTORY
        else (entry.kind, entry.version.size, entry.version.mime, entry.version.executable)
        for entry in page.entries
        if entry.version is not None
    }


async def test_every_caller_sees_in_the_index_what_reading_shows(project: WorkspaceWorld) -> None:
    world, randomness = project, random.Random(3)
    await world.rule("secret/**", Level.HIDDEN)
    await world.rule("a/hidden.txt", Level.HIDDEN)
    callers = [world.owner, await world.agent("ann"), await world.narrow_token("bob", "a")]
    names = [f"{folder}/{name}" for folder in ("a", "secret", "b/c") for name in ("x", "hidden.txt", "y.md", "d")]
    for _ in range(12):
        await commit(world, *_random_changes(randomness, names, await world.head()))
        head = await world.head()
        if randomness.random() < 0.7:  # else the next index is made from one further back
            for caller in callers:
                assert await indexed(world, caller, None) == await read(world, caller, None)
        for caller in callers:
            past = Seq(randomness.randint(0, head))
            assert await indexed(world, caller, past) == await read(world, caller, past)


def _random_changes(randomness: random.Random, names: list[str], head: Seq) -> list[RequestedChange]:
    chosen = randomness.sample(names, 3)
    changes = [
        write(chosen[0], randomness.randbytes(randomness.randrange(5)), head),
        delete(chosen[1], head) if randomness.random() < 0.5 else mkdir(f"{chosen[1]}-folder", head),
    ]
    if randomness.random() < 0.7:
        changes.append(rename(chosen[2], f"{randomness.choice(['a', 'secret'])}/m{randomness.randrange(9)}", head))
    return changes


async def test_a_policy_that_narrows_counts_at_once(project: WorkspaceWorld) -> None:
    await project.put({"a/b": b"x", "c": b"y"})
    ann = await project.agent("ann")
    place = project.agents.files.project(ann, project.project_id)
    assert set(entries_of(await place.tree())) == {"a/b", "c"}
    await project.rule("a/**", Level.HIDDEN)
    assert set(entries_of(await place.tree())) == {"c"}
    assert (await project.agents.files.info(place)).folders == 0
    with pytest.raises(NotFound):
        await place.folder(TreePath("a"))
    assert (await place.history(None, before=None, limit=10)).operations[0].path == "c"


async def test_a_snapshot_is_read_and_never_changed(project: WorkspaceWorld) -> None:
    first = await project.put({"a": b"1"})
    await project.put({"a": b"2", "b": b"3"})
    place = project.agents.files.project(project.owner, project.project_id, first)
    assert set(entries_of(await place.tree())) == {"a"}
    async with place.opened(TreePath("a")) as opened:
        assert [piece async for piece in opened.content.stream(0, 1)] == [b"1"]
    with pytest.raises(InvalidInput):
        await place.delete(TreePath("a"), OperationContext())
    with pytest.raises(InvalidInput):
        await project.agents.files.project(project.owner, project.project_id, Seq(99)).tree()


async def test_what_was_used_least_is_forgotten_first(project: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_index, "MOST_ENTRIES", 3)
    await project.put({"a": b"1", "b": b"2"})
    place = project.agents.files.project(project.owner, project.project_id)
    assert set(entries_of(await place.tree())) == {"a", "b"}
    await project.new_project()
    await project.put({"c": b"1"})
    other = project.agents.files.project(project.owner, project.project_id)
    for _ in range(3):
        assert set(entries_of(await other.tree())) == {"c"}
        assert set(entries_of(await place.tree())) == {"a", "b"}


async def test_history_hides_where_a_file_came_from_and_went(project: WorkspaceWorld) -> None:
    await project.rule("secret/**", Level.HIDDEN)
    await project.put({"secret/a": b"1", "open": b"2"})
    await commit(project, rename("open", "secret/open", await project.head()))
    await commit(project, rename("secret/a", "a", await project.head()))
    ann = await project.agent("ann")
    place = project.agents.files.project(ann, project.project_id)
    page = await place.history(None, before=None, limit=10)
    assert [(one.action, one.path, one.previous_path, one.old_hash) for one in page.operations] == [
        ("write", "a", None, None),
        ("delete", "open", None, ContentHash.of(b"2")),
    ]
    assert "secret" not in repr(page)
    with pytest.raises(NotFound):
        await place.history(TreePath("secret/open"), before=None, limit=10)


async def test_the_history_tells_administrators_from_where(project: WorkspaceWorld) -> None:
    place = project.agents.files.project(project.owner, project.project_id)
    await project.put({"a": b"1"})
    [told] = (await place.history(None, before=None, limit=1)).operations
    assert told.origin == project.owner.origin
