"""Renaming a folder of the project: its files stay the files they were, and what others do in it goes along."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.gate_world import delete
from tests.support.workspace_world import WorkspaceWorld

from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.workspaces.checkpoints import Committed
from contextbase.workspaces.model import NamedWorkspace

LIST = b'{\n  "a": 1,\n  "b": 1\n}\n'
THEIRS = b'{\n  "a": 2,\n  "b": 1\n}\n'
OURS = b'{\n  "a": 1,\n  "b": 2\n}\n'
BOTH = b'{\n  "a": 2,\n  "b": 2\n}\n'


def _by_mv(folder: Path) -> None:
    subprocess.run(["mv", "docs", "manual"], cwd=folder, check=True)


def _by_git(folder: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*"]
    for command in (["init", "-q"], ["add", "-A"], ["mv", "docs", "manual"]):
        subprocess.run([*git, *command], cwd=folder, check=True)


def _by_python(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", "import os; os.rename('docs', 'manual')"], cwd=folder, check=True)


def _by_node(folder: Path) -> None:
    subprocess.run(["node", "-e", "require('fs').renameSync('docs', 'manual')"], cwd=folder, check=True)


PROGRAMS = {"mv": _by_mv, "git": _by_git, "python": _by_python}
if shutil.which("node"):  # nothing else here needs it
    PROGRAMS["node"] = _by_node


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
async def test_a_folder_renamed_by_any_program_keeps_its_files_and_takes_others_work_along(
    world: WorkspaceWorld, program: Callable[[Path], None]
) -> None:
    await world.put({"docs/list.json": LIST, "docs/deep/same.md": b"same\n", "other.md": b"o\n"})
    nodes = await _nodes(world)
    folder = await world.create("ann")
    await world.put({"docs/list.json": THEIRS, "docs/deep/new.md": b"new\n"})
    program(folder)
    (folder / "manual" / "list.json").write_bytes(OURS)
    completed = await world.complete("ann")
    assert completed.is_removed, completed.kept_because
    assert await world.tree() == {
        "manual/list.json": BOTH,
        "manual/deep/same.md": b"same\n",
        "manual/deep/new.md": b"new\n",
        "other.md": b"o\n",
    }
    after = await _nodes(world)
    assert after["manual/list.json"] == nodes["docs/list.json"]
    assert after["manual/deep/same.md"] == nodes["docs/deep/same.md"]


async def test_what_others_edit_after_the_rename_is_in_follows_it(world: WorkspaceWorld) -> None:
    await world.put({"docs/list.json": LIST})
    ann, ben = await world.create("ann"), await world.create("ben")
    (ann / "docs").rename(ann / "manual")
    (ben / "docs" / "list.json").write_bytes(THEIRS)
    await world.complete("ann")
    assert _statuses(await world.commit("ben")) == [ChangeStatus.MERGED]
    assert (ben / "manual" / "list.json").read_bytes() == THEIRS
    assert await world.tree() == {"manual/list.json": THEIRS}


async def test_merges_come_into_a_renamed_folder_and_its_next_rename_starts_there(world: WorkspaceWorld) -> None:
    await world.put({"docs/list.json": LIST, "docs/deep/link": b"plain\n"})
    nodes = await _nodes(world)
    folder = await world.create("ann")
    await world.put({"docs/list.json": THEIRS})
    (folder / "docs").rename(folder / "manual")
    await world.commit("ann")
    assert (folder / "manual" / "list.json").read_bytes() == THEIRS
    await world.put({"manual/list.json": BOTH, "manual/new.md": b"new\n", "docs/later.md": b"not of the folder\n"})
    (folder / "books").mkdir()
    (folder / "manual").rename(folder / "books" / "first")
    await world.commit("ann")
    assert (folder / "books/first/list.json").read_bytes() == BOTH
    (folder / "books/first").rename(folder / "docs")
    completed = await world.complete("ann")
    assert completed.is_removed, completed.kept_because
    assert await world.tree() == {
        "docs/list.json": BOTH,
        "docs/deep/link": b"plain\n",
        "docs/later.md": b"not of the folder\n",
        "books/first/new.md": b"new\n",  # that the folder was elsewhere is only known of what was committed from there
    }
    after = await _nodes(world)
    assert {path: after[path] for path in nodes} == nodes


async def test_a_file_that_was_committed_before_its_folder_was_renamed_stays_the_file_it_was(
    world: WorkspaceWorld,
) -> None:
    await world.put({"docs/list.json": LIST})
    nodes = await _nodes(world)
    folder = await world.create("ann")
    (folder / "docs" / "list.json").write_bytes(OURS)
    await world.commit("ann")
    await world.put({"docs/list.json": BOTH})
    (folder / "docs").rename(folder / "manual")
    (folder / "manual" / "more.md").write_bytes(b"more\n")
    await world.commit("ann")
    assert (folder / "manual" / "list.json").read_bytes() == BOTH
    assert await world.tree() == {"manual/list.json": BOTH, "manual/more.md": b"more\n"}
    assert (await _nodes(world))["manual/list.json"] == nodes["docs/list.json"]


async def test_a_folder_that_is_an_entry_is_renamed_without_a_conflict(world: WorkspaceWorld) -> None:
    await world.make_folder("docs")
    await world.put({"docs/a.md": b"a\n"})
    folder = await world.create("ann")
    (folder / "docs").rename(folder / "manual")
    assert set(_statuses(await world.commit("ann"))) == {ChangeStatus.WRITTEN}
    assert await world.tree() == {"manual/a.md": b"a\n"}


async def test_a_folder_renamed_and_made_again_are_two(world: WorkspaceWorld) -> None:
    await world.put({"docs/a.md": b"a\n", "docs/b.md": b"b\n"})
    folder = await world.create("ann")
    (folder / "docs").rename(folder / "manual")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_bytes(b"another\n")
    await world.commit("ann")
    assert await world.tree() == {"manual/a.md": b"a\n", "manual/b.md": b"b\n", "docs/a.md": b"another\n"}
    await world.put({"docs/theirs.md": b"theirs\n"})
    (folder / "docs" / "a.md").write_bytes(b"changed\n")
    await world.commit("ann")
    assert (await world.tree())["docs/theirs.md"] == b"theirs\n"


async def test_what_is_hidden_in_a_renamed_folder_stays_and_what_may_not_be_moved_too(world: WorkspaceWorld) -> None:
    await world.put({"docs/a.md": b"a\n", "docs/secret/s": b"s\n", "docs/kept/k": b"k\n"})
    await world.rule("docs/secret/**", Level.HIDDEN)
    await world.rule("docs/kept/**", Level.READ)
    folder = await world.create("ann")
    await world.put({"docs/secret/later": b"s\n", "docs/kept/later": b"k\n", "docs/later": b"l\n"})
    (folder / "docs").rename(folder / "manual")
    assert not (folder / "manual" / "secret").exists()
    committed = await world.commit("ann")
    assert {one.answered.change.renamed_from for one in committed.refused} == {"docs/kept/k"}
    assert not any("secret" in one.answered.answer.path for one in committed.changes)
    assert await world.tree() == {
        "manual/a.md": b"a\n",
        "manual/later": b"l\n",
        "docs/secret/s": b"s\n",
        "docs/secret/later": b"s\n",
        "docs/kept/k": b"k\n",
        "docs/kept/later": b"k\n",
    }
    assert (folder / "docs" / "kept" / "k").read_bytes() == b"k\n"


async def test_what_others_added_is_not_put_over_what_stands_where_the_folder_went(world: WorkspaceWorld) -> None:
    await world.put({"docs/a.md": b"a\n"})
    folder = await world.create("ann")
    await world.put({"docs/new.md": b"in the old one\n", "manual/new.md": b"in the new one\n"})
    (folder / "docs").rename(folder / "manual")
    assert _statuses(await world.commit("ann")) == [ChangeStatus.WRITTEN]
    assert await world.tree() == {
        "manual/a.md": b"a\n",
        "manual/new.md": b"in the new one\n",
        "docs/new.md": b"in the old one\n",
    }


async def test_a_tracked_folder_renamed_to_an_ignored_name_is_not_deleted(world: WorkspaceWorld) -> None:
    await world.put({".contextbaseignore": b"build/\n", "docs/a.md": b"a\n", "docs/b.md": b"b\n"})
    folder = await world.create("ann")
    (folder / "docs").rename(folder / "build")
    (folder / "build" / "a.md").write_bytes(b"edited\n")
    (folder / "build" / "made.o").write_bytes(b"not tracked\n")
    await world.commit("ann")
    assert await world.tree() == {
        ".contextbaseignore": b"build/\n",
        "build/a.md": b"edited\n",
        "build/b.md": b"b\n",
    }


async def test_a_copy_of_a_renamed_folders_file_is_committed_with_its_bytes(world: WorkspaceWorld) -> None:
    """The file at the new place was never written by the agent: its bytes are not among the agent's work."""
    large = os.urandom(400_000)
    await world.put({"docs/a.md": b"a\n", "docs/large.bin": large})
    folder = await world.create("ann")
    (folder / "docs").rename(folder / "manual")
    shutil.copytree(folder / "manual", folder / "docs")
    (folder / "docs" / "a.md").write_bytes(b"changed\n")
    (folder / "docs" / "large.bin").write_bytes(b"small now\n")
    diffs, _ = await world.agents.workspaces.diff(await world.agent("ann"), NamedWorkspace(world.project_id))
    assert {diff.path for diff in diffs} == {"docs/a.md", "docs/large.bin", "manual/a.md", "manual/large.bin"}
    await world.commit("ann")
    assert await world.tree() == {
        "docs/a.md": b"changed\n",
        "docs/large.bin": b"small now\n",
        "manual/a.md": b"a\n",
        "manual/large.bin": large,
    }


async def test_a_folder_deleted_by_others_and_renamed_here_goes_to_review_and_nothing_is_lost(
    world: WorkspaceWorld,
) -> None:
    base = await world.put({"docs/a.md": b"a\n"})
    folder = await world.create("ann")
    await world.write(delete("docs/a.md", base))
    (folder / "docs").rename(folder / "manual")
    assert _statuses(await world.commit("ann")) == [ChangeStatus.IN_REVIEW]
    assert (folder / "manual" / "a.md").read_bytes() == b"a\n"


def _statuses(committed: Committed) -> list[ChangeStatus]:
    return [one.answered.answer.status for one in committed.changes]


async def _nodes(world: WorkspaceWorld) -> dict[str, object]:
    async with world.services.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT path, node_id FROM versions WHERE project_id = $1 AND replaced_seq IS NULL AND kind = 'file'",
            world.project_id,
        )
    return {row["path"]: row["node_id"] for row in rows}
