"""Workspaces on a snapshot that is not the head: what they show, and how their commits meet the head."""

import pytest
from tests.support.gate_world import rename
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import read_tree

from contextbase.errors import Conflict, InvalidInput
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.ids import Seq


async def test_it_shows_the_tree_of_then_and_its_commits_merge_with_the_head(world: WorkspaceWorld) -> None:
    then = await world.put({"list.json": b'{\n  "a": 1,\n  "b": 1\n}\n', "gone.txt": b"gone\n"})
    await world.put({"list.json": b'{\n  "a": 2,\n  "b": 1\n}\n', "gone.txt": None, "new.txt": b"new\n"})
    folder = await world.create("ann", at=then)
    assert set(read_tree(folder)) == {"list.json", "gone.txt"}
    assert await world.status("ann") == set()
    (folder / "list.json").write_bytes(b'{\n  "a": 1,\n  "b": 2\n}\n')
    [change] = (await world.commit("ann")).changes
    assert (change.answered.change.base, change.answered.answer.status) == (then, ChangeStatus.MERGED)
    await world.complete("ann")
    assert await world.tree() == {"list.json": b'{\n  "a": 2,\n  "b": 2\n}\n', "new.txt": b"new\n"}


async def test_the_first_snapshot_is_empty_and_one_from_the_future_is_refused(world: WorkspaceWorld) -> None:
    head = await world.put({"a.txt": b"a\n"})
    assert read_tree(await world.create("ann", at=Seq(0))) == {}
    with pytest.raises(InvalidInput):
        await world.create("ben", at=Seq(head + 1))


async def test_who_has_one_gets_no_other_snapshot_before_it_is_ended(world: WorkspaceWorld) -> None:
    then = await world.put({"a.txt": b"a\n"})
    now = await world.put({"a.txt": b"b\n"})
    folder = await world.create("ann")
    assert await world.create("ann", at=now) == folder
    with pytest.raises(Conflict):
        await world.create("ann", at=then)
    await world.complete("ann")
    assert read_tree(await world.create("ann", at=then)) == {"a.txt": b"a\n"}


async def test_what_is_hidden_now_is_hidden_then_by_both_of_its_paths(world: WorkspaceWorld) -> None:
    """A file that was moved to a hidden folder since is hidden in its old place, and one that came out of it stays
    hidden there."""
    then = await world.put({"open/a.txt": b"a\n", "open/b.txt": b"b\n", "secret/c.txt": b"c\n", "secret/d.txt": b"d\n"})
    await world.rule("secret/**", Level.HIDDEN)
    await world.write(rename("open/b.txt", "secret/b.txt", then), rename("secret/c.txt", "open/c.txt", then))
    folder = await world.create("ann", at=then)
    assert read_tree(folder) == {"open/a.txt": b"a\n"}
    (folder / "open" / "b.txt").write_bytes(b"mine\n")
    [change] = (await world.commit("ann")).changes
    assert change.answered.change.base == 0  # made from nothing: what is hidden was not seen


async def test_a_move_into_a_hidden_folder_hides_the_old_place_at_once(world: WorkspaceWorld) -> None:
    then = await world.put({"a.txt": b"a\n", "b.txt": b"b\n", "secret/c.txt": b"c\n"})
    await world.rule("secret/**", Level.HIDDEN)
    await world.put({"a.txt": b"A\n"})
    assert set(read_tree(await world.create("ann", at=then))) == {"a.txt", "b.txt"}
    await world.write(rename("b.txt", "secret/b.txt", then))
    assert set(read_tree(await world.create("ben", at=then))) == {"a.txt"}
