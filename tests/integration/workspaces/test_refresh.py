"""Others' changes come into an open workspace; the agent's own work stays what it is, on the base that it has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import read_tree

from contextbase.errors import Forbidden
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.refresh.plan import KeptReason
from contextbase.workspaces.refresh.service import Refreshed

BOTH = b'{\n  "a": 1,\n  "b": 1\n}\n'
OTHERS = BOTH.replace(b'"a": 1', b'"a": 2')
MINE = BOTH.replace(b'"b": 1', b'"b": 2')
MERGED = OTHERS.replace(b'"b": 1', b'"b": 2')


def tree_of(folder: Path) -> dict[str, object]:
    """Without what is ours."""
    return {path: node for path, node in read_tree(folder).items() if not path.startswith(".contextbase")}


def arrived(refreshed: Refreshed) -> set[str]:
    return {f"{one.kind} {one.path}" for one in refreshed.arrived}


def kept(refreshed: Refreshed) -> dict[str, KeptReason]:
    return {one.path: one.reason for one in refreshed.kept}


async def test_what_the_agent_left_alone_arrives_and_is_not_its_change(world: WorkspaceWorld) -> None:
    start = {"a.txt": b"a\n", "gone.txt": b"g\n", "docs/deep/d.md": b"d\n", "run": b"#!/bin/sh\n", "own.txt": b"o\n"}
    before = await world.put({**start})
    folder = await world.create("ann")
    (folder / "own.txt").write_bytes(b"mine\n")
    head = await world.head()
    await world.write(
        write("a.txt", b"A\n", head),
        delete("gone.txt", head),
        delete("docs/deep/d.md", head),
        write("new/n.txt", b"n\n", head),
        write("run", b"#!/bin/sh\n", head, executable=True),
        mkdir("empty", head),
    )
    refreshed = await world.refresh("ann")
    assert (refreshed.since, refreshed.seq) == (before, await world.head())
    assert arrived(refreshed) == {
        "modified a.txt",
        "deleted gone.txt",
        "deleted docs/deep/d.md",
        "created new/n.txt",
        "mode run",
        "created empty",
    }
    assert (refreshed.merged, refreshed.kept) == ([], [])
    assert not (folder / "docs").exists()
    assert os.access(folder / "run", os.X_OK)
    assert await world.status("ann") == {"own.txt"}
    expected = await world.tree()
    assert tree_of(folder) == {**expected, "own.txt": b"mine\n"}
    committed = await world.commit("ann")
    assert [one.answered.change.path for one in committed.changes] == ["own.txt"]
    assert arrived(await world.refresh("ann")) == set()
    await world.complete("ann")
    assert await world.tree() == {**expected, "own.txt": b"mine\n"}


async def test_both_sides_changes_are_merged_into_the_agent_s_file_which_then_starts_from_the_head(
    world: WorkspaceWorld,
) -> None:
    await world.put({"list.json": BOTH})
    folder = await world.create("ann")
    (folder / "list.json").write_bytes(MINE)
    head = await world.put({"list.json": OTHERS})
    refreshed = await world.refresh("ann")
    assert (refreshed.merged, arrived(refreshed), kept(refreshed)) == (["list.json"], set(), {})
    assert (folder / "list.json").read_bytes() == MERGED
    [change] = (await world.commit("ann")).changes
    assert (change.answered.change.base, change.answered.answer.status) == (head, ChangeStatus.WRITTEN)


async def test_what_does_not_merge_stays_with_its_own_base_until_it_is_committed(world: WorkspaceWorld) -> None:
    then = await world.put({"plan.md": b"We launch in May.\n", "a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "plan.md").write_bytes(b"We launch in July.\n")
    await world.put({"plan.md": b"We launch in June.\n"})
    assert kept(await world.refresh("ann")) == {"plan.md": KeptReason.CONFLICT}
    await world.put({"a.txt": b"A\n"})
    again = await world.refresh("ann")
    assert (arrived(again), kept(again)) == ({"modified a.txt"}, {"plan.md": KeptReason.CONFLICT})
    assert (folder / "plan.md").read_bytes() == b"We launch in July.\n"
    [change] = (await world.commit("ann")).changes
    assert (change.answered.change.base, change.answered.answer.status) == (then, ChangeStatus.IN_REVIEW)
    # What waits for a review is safe: the folder goes on from what the project has.
    assert arrived(await world.refresh("ann")) == {"modified plan.md"}
    assert (folder / "plan.md").read_bytes() == b"We launch in June.\n"
    assert await world.status("ann") == set()


async def test_what_one_side_deleted_and_the_other_changed_is_as_the_agent_has_it(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "b.txt": b"b\n", "c.txt": b"c\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"mine\n")
    (folder / "b.txt").unlink()
    (folder / "c.txt").unlink()
    await world.put({"a.txt": None, "b.txt": b"B\n", "c.txt": None})
    refreshed = await world.refresh("ann")
    assert kept(refreshed) == {"a.txt": KeptReason.DELETED_BY_OTHERS, "b.txt": KeptReason.DELETED_BY_YOU}
    assert tree_of(folder) == {"a.txt": b"mine\n"}
    assert await world.status("ann") == {"a.txt", "b.txt"}
    statuses = {one.answered.change.path: one.answered.answer.status for one in (await world.commit("ann")).changes}
    assert statuses == {"a.txt": ChangeStatus.IN_REVIEW, "b.txt": ChangeStatus.IN_REVIEW}


async def test_what_the_agent_has_already_needs_nothing(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"same\n")
    (folder / "new.txt").write_bytes(b"new\n")
    await world.put({"a.txt": b"same\n", "new.txt": b"new\n"})
    refreshed = await world.refresh("ann")
    assert (arrived(refreshed), refreshed.merged, kept(refreshed)) == (set(), [], {})
    assert await world.status("ann") == set()
    await world.put({"new.txt": b"newer\n"})
    assert arrived(await world.refresh("ann")) == {"modified new.txt"}


async def test_changing_it_back_after_others_did_is_a_change(world: WorkspaceWorld) -> None:
    """What the view had first is not what the folder goes on from."""
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    await world.put({"a.txt": b"A\n", "b.txt": b"b\n"})
    await world.refresh("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    (folder / "b.txt").unlink()
    assert await world.status("ann") == {"a.txt", "b.txt"}
    await world.complete("ann")
    assert await world.tree() == {"a.txt": b"a\n"}


async def test_a_refresh_does_not_bring_back_what_others_took_back(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    await world.put({"a.txt": b"mistake\n", "b.txt": b"mistake\n"})
    await world.refresh("ann")
    await world.put({"a.txt": b"a\n", "b.txt": None})
    (folder / "own.txt").write_bytes(b"o\n")
    await world.commit("ann")
    assert await world.tree() == {"a.txt": b"a\n", "own.txt": b"o\n"}
    assert arrived(await world.refresh("ann")) == {"modified a.txt", "deleted b.txt"}
    assert tree_of(folder) == await world.tree()


async def test_what_the_agent_committed_and_others_took_back_arrives_as_they_have_it(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"mine\n")
    await world.commit("ann")
    await world.put({"a.txt": b"a\n"})  # as in the snapshot that the folder was made from
    assert arrived(await world.refresh("ann")) == {"modified a.txt"}
    assert tree_of(folder) == {"a.txt": b"a\n"}
    assert await world.status("ann") == set()


async def test_renames_by_others_arrive_and_the_agent_s_own_wait_for_its_commit(world: WorkspaceWorld) -> None:
    start = await world.put({"a.txt": b"a\n", "list.json": BOTH, "docs/one.md": b"1\n", "docs/two.md": b"2\n"})
    folder = await world.create("ann")
    (folder / "list.json").rename(folder / "moved.json")
    (folder / "docs").rename(folder / "manual")
    await world.write(rename("a.txt", "b.txt", start), write("list.json", OTHERS, start))
    await world.put({"docs/one.md": b"one\n", "docs/three.md": b"3\n"})
    refreshed = await world.refresh("ann")
    assert arrived(refreshed) == {"deleted a.txt", "created b.txt"}
    renamed = dict.fromkeys(("list.json", "docs/one.md", "docs/three.md"), KeptReason.RENAMED_BY_YOU)
    assert kept(refreshed) == renamed
    await world.commit("ann")
    await world.refresh("ann")
    expected = {
        "b.txt": b"a\n",
        "moved.json": OTHERS,
        "manual/one.md": b"one\n",
        "manual/two.md": b"2\n",
        "manual/three.md": b"3\n",
    }
    if world.provider == "overlay":  # a plain copy knows its folders, too; both keep the nodes
        assert tree_of(folder) == expected
    assert await world.tree() == expected
    assert tree_of(folder) == expected
    assert await world.status("ann") == set()


async def test_files_and_folders_that_others_put_in_each_other_s_place_arrive(world: WorkspaceWorld) -> None:
    start = await world.put({"thing": b"file\n", "place/inside": b"i\n", "place/own.log": b"l\n"})
    await world.write(mkdir("vacant", start))
    folder = await world.create("ann")
    head = await world.head()
    await world.write(delete("thing", head), write("thing/inside", b"t\n", head))
    await world.put({"place/inside": None, "place/own.log": None, "vacant": None})
    await world.put({"place": b"file now\n", "vacant": b"v\n"})
    refreshed = await world.refresh("ann")
    assert kept(refreshed) == {}
    assert tree_of(folder) == {"thing/inside": b"t\n", "place": b"file now\n", "vacant": b"v\n"}
    assert await world.status("ann") == set()


async def test_what_stands_in_the_way_stays_and_arrives_once_it_is_gone(world: WorkspaceWorld, tmp_path: Path) -> None:
    await world.put({"a.txt": b"a\n", ".gitignore": b"*.log\n"})
    folder = await world.create("ann")
    (tmp_path / "outside").mkdir()
    (folder / "build.log").write_bytes(b"ignored\n")
    (folder / "d").symlink_to(tmp_path / "outside")
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "p")
    await world.put({"build.log": b"theirs\n", "d/x": b"x\n", "pipe/p": b"p\n"})
    refreshed = await world.refresh("ann")
    assert arrived(refreshed) == set()
    assert kept(refreshed) == {
        "build.log": KeptReason.IN_THE_WAY,
        "d/x": KeptReason.IN_THE_WAY,
        "pipe/p": KeptReason.REPORTED,
    }
    assert (folder / "build.log").read_bytes() == b"ignored\n"
    assert list((tmp_path / "outside").iterdir()) == []
    for name in ("build.log", "d", "pipe/p"):
        (folder / name).unlink()
    assert arrived(await world.refresh("ann")) == {"created build.log", "created d/x", "created pipe/p"}
    assert await world.status("ann") == set()
    assert tree_of(folder) == await world.tree()


async def test_hidden_paths_never_arrive_and_what_is_shown_later_does(world: WorkspaceWorld) -> None:
    await world.put({"open/a.txt": b"a\n", "secret/old.txt": b"old\n"})
    await world.rule("secret/**", Level.HIDDEN)
    folder = await world.create("ann")
    await world.put({"open/b.txt": b"b\n", "secret/s.txt": b"s\n", "secret/old.txt": b"newer\n"})
    refreshed = await world.refresh("ann")
    assert arrived(refreshed) == {"created open/b.txt"}
    assert set(tree_of(folder)) == {"open/a.txt", "open/b.txt"}
    assert "secret" not in (folder / ".contextbase" / "notices.md").read_text()
    await world.write(rename("open/b.txt", "secret/b.txt", await world.head()))
    assert arrived(await world.refresh("ann")) == {"deleted open/b.txt"}
    await world.rule("secret/**", Level.READ)
    assert arrived(await world.refresh("ann")) == {
        "created secret/b.txt",
        "created secret/old.txt",
        "created secret/s.txt",
    }
    assert tree_of(folder) == await world.tree()
    assert await world.status("ann") == set()


async def test_a_policy_that_hides_what_arrived_fences_the_workspace(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    await world.put({"new.txt": b"n\n"})
    await world.refresh("ann")
    (folder / "own.txt").write_bytes(b"mine\n")
    await world.rule("new.txt", Level.HIDDEN)
    for call in (world.agents.workspaces.status, world.agents.workspaces.refresh, world.agents.workspaces.path):
        with pytest.raises(Forbidden):
            await call(await world.agent("ann"), NamedWorkspace(world.project_id))
    completed = await world.complete("ann")
    assert completed.is_removed
    assert (await world.tree())["own.txt"] == b"mine\n"


async def test_a_workspace_made_with_a_token_for_one_folder_gets_no_more_through_a_wider_one(
    world: WorkspaceWorld,
) -> None:
    await world.put({"docs/a.md": b"a\n", "b.txt": b"b\n"})
    narrow = await world.narrow_token("ann", "docs")
    folder = (await world.agents.workspaces.create(narrow, world.project_id)).record.path
    await world.put({"docs/a.md": b"A\n", "b.txt": b"B\n", "c.txt": b"c\n"})
    assert arrived(await world.refresh("ann")) == {"modified docs/a.md"}
    assert set(tree_of(folder)) == {"docs/a.md"}


@pytest.mark.parametrize("strategy", ["review", "critical", "last-writer", "ours"])
async def test_only_the_gate_decides_where_a_policy_asks_for_more_than_a_merge(
    world: WorkspaceWorld, strategy: str
) -> None:
    await world.put({"list.json": BOTH})
    folder = await world.create("ann")
    (folder / "list.json").write_bytes(MINE)
    await world.put({"list.json": OTHERS})
    await world.services.policies.put_merge_rules(world.owner, world.project_id, [("list.json", strategy)])
    assert kept(await world.refresh("ann")) == {"list.json": KeptReason.POLICY}
    assert (folder / "list.json").read_bytes() == MINE


async def test_a_commit_can_bring_others_changes_along(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "own.txt").write_bytes(b"mine\n")
    await world.put({"a.txt": b"A\n"})
    agent = await world.agent("ann")
    _, committed = await world.agents.workspaces.commit(
        agent, NamedWorkspace(world.project_id), wish=Wish(), refresh=True
    )
    assert committed.refreshed is not None
    assert arrived(committed.refreshed) == {"modified a.txt"}
    assert tree_of(folder) == {"a.txt": b"A\n", "own.txt": b"mine\n"}


async def test_a_program_keeps_its_open_files(world: WorkspaceWorld) -> None:
    """Who reads a file goes on reading what it opened. Who has one open for writing keeps it, until it is done."""
    await world.put({"read.txt": b"old\n", "written.txt": b"old\n", "mapped.txt": b"old\n", "gone.txt": b"old\n"})
    folder = await world.create("ann")
    program = """
import mmap, sys
reading, writing, gone = open("read.txt"), open("written.txt", "a"), open("gone.txt", "a")
with open("mapped.txt", "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
print("open", flush=True)
sys.stdin.readline()
print(reading.read(), end="", flush=True)
for file in (writing, gone):
    file.write("more\\n")
    file.close()
mapped[:3] = b"OLD"
mapped.flush()
del mapped
print("closed", flush=True)
sys.stdin.readline()
"""
    with subprocess.Popen(  # noqa: ASYNC220 - it is quick to start
        [sys.executable, "-c", program], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        assert running.stdin
        assert running.stdout.readline() == "open\n"
        await world.put({"read.txt": b"new\n", "written.txt": b"new\n", "mapped.txt": b"new\n", "gone.txt": None})
        refreshed = await world.refresh("ann")
        assert arrived(refreshed) == {"modified read.txt"}
        assert kept(refreshed) == dict.fromkeys(("written.txt", "mapped.txt", "gone.txt"), KeptReason.IN_USE)
        running.stdin.write("\n")
        running.stdin.flush()
        assert running.stdout.readline() == "old\n"
        assert running.stdout.readline() == "closed\n"
        assert (folder / "written.txt").read_bytes() == b"old\nmore\n"
        assert (folder / "mapped.txt").read_bytes() == b"OLD\n"
        assert await world.status("ann") == {"written.txt", "mapped.txt", "gone.txt"}
        running.stdin.close()
    assert (folder / "read.txt").read_bytes() == b"new\n"


async def test_an_edit_of_a_file_that_others_renamed_follows_it_with_the_next_commit(world: WorkspaceWorld) -> None:
    start = await world.put({"list.json": BOTH})
    folder = await world.create("ann")
    (folder / "list.json").write_bytes(MINE)
    await world.write(rename("list.json", "moved.json", start))
    await world.put({"moved.json": OTHERS})
    refreshed = await world.refresh("ann")
    assert arrived(refreshed) == {"created moved.json"}
    assert kept(refreshed) == {"list.json": KeptReason.DELETED_BY_OTHERS}
    await world.commit("ann")
    assert tree_of(folder) == {"moved.json": MERGED} == await world.tree()
    assert await world.status("ann") == set()
