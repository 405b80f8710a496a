"""`.contextbase/` is in the agent's hands: whatever it does there, nothing breaks, gets lost or leads out."""

import os
import shutil
from pathlib import Path

import pytest
from tests.support.gate_world import rename as rename_to
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import read_tree, unmount_all

from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.settlement import ConflictsIn
from contextbase.workspaces.syscalls import Rename, rename, unmount


@pytest.mark.parametrize("in_the_way", ["file", "link", "pipe"])
async def test_a_refused_version_that_cannot_be_put_aside_keeps_the_folder(
    world: WorkspaceWorld, tmp_path: Path, in_the_way: str
) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.rule("a.txt", Level.READ)
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"mine\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    match in_the_way:
        case "file":
            (folder / ".contextbase").write_bytes(b"")
        case "link":
            (folder / ".contextbase").symlink_to(outside)
        case _:
            os.mkfifo(folder / ".contextbase")
    completed = await world.complete("ann")
    assert not completed.is_removed
    assert "a.txt was refused" in completed.kept_because[0]
    assert (folder / "a.txt").read_bytes() == b"mine\n"
    assert list(outside.iterdir()) == []
    assert (await world.complete("ann", discard=True)).is_removed


async def test_links_pipes_and_depths_among_what_was_put_aside_do_no_harm(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    replaced, refused = folder / ".contextbase" / "replaced", folder / ".contextbase" / "refused"
    replaced.mkdir(parents=True)
    refused.mkdir()
    os.mkfifo(replaced / "pipe-0")
    (replaced / "link-0").symlink_to("/etc/passwd")
    (refused / os.fsdecode(b"\xff")).write_bytes(b"")
    here = os.open(refused, os.O_RDONLY)
    for _ in range(450):  # beyond what one path can say
        os.mkdir("a-folder-in-a-folder", dir_fd=here)
        below = os.open("a-folder-in-a-folder", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (folder / "a.txt").write_bytes(b"mine\n")
    _, look = await world.agents.workspaces.status(await world.agent("ann"), NamedWorkspace(world.project_id))
    assert len(look.changes) == 1
    assert len(look.left) == 1
    assert not (await world.complete("ann")).is_removed
    assert (await world.complete("ann", discard=True)).is_removed


async def test_a_name_that_can_grow_no_longer_is_refused_again_and_again(world: WorkspaceWorld) -> None:
    name = "x" * 255
    await world.put({name: b"as it was\n"})
    await world.rule("x*", Level.READ)
    folder = await world.create("ann")
    for body in (b"one\n", b"two\n", b"three\n"):
        (folder / name).write_bytes(body)
        [settled] = (await world.commit("ann")).changes
        assert settled.answered.answer.status is ChangeStatus.REFUSED
    assert (folder / ".contextbase" / "refused" / name).read_bytes() == b"one\n"
    assert (folder / name).read_bytes() == b"three\n"  # where it was, for want of a name
    assert not (await world.complete("ann")).is_removed


async def test_refused_files_and_folders_in_each_others_place_give_back_what_was_there(world: WorkspaceWorld) -> None:
    given: dict[str, bytes | None] = {"folder/a.txt": b"a\n", "folder/below/b.txt": b"b\n", "file": b"file\n"}
    await world.put(given)
    await world.rule("**", Level.READ)
    folder = await world.create("ann")
    shutil.rmtree(folder / "folder")
    (folder / "folder").write_bytes(b"a file\n")
    (folder / "file").unlink()
    (folder / "file").mkdir()
    (folder / "file" / "c.txt").write_bytes(b"c\n")
    await world.commit("ann")
    shown = {path: body for path, body in read_tree(folder).items() if not path.startswith(".contextbase")}
    assert shown == given
    assert (folder / ".contextbase" / "refused" / "file" / "c.txt").read_bytes() == b"c\n"
    assert (folder / ".contextbase" / "refused" / "folder").read_bytes() == b"a file\n"


async def test_what_is_written_while_the_folder_is_not_shown_is_kept(world: WorkspaceWorld) -> None:
    if world.provider == "copy":
        return  # is always shown
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    for body in (b"one\n", b"two\n"):
        unmount_all(world.services.data.node)  # as a reboot does
        (folder / "below").mkdir()
        (folder / "below" / "stray.txt").write_bytes(body)
        await world.agents.workspace_upkeep.sweep()
    assert (folder / "a.txt").read_bytes() == b"a\n"
    kept = folder / ".contextbase" / "refused"
    assert (kept / "written-while-closed" / "below" / "stray.txt").read_bytes() == b"one\n"
    assert (kept / "written-while-closed.2" / "below" / "stray.txt").read_bytes() == b"two\n"
    assert "written-while-closed.2" in (folder / ".contextbase" / "notices.md").read_text()
    assert not (await world.complete("ann")).is_removed


async def test_what_is_written_in_the_moment_the_folder_is_closed_is_kept(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world.provider == "copy":
        return  # there is no mount to be taken down
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")

    def unmounted_under_a_writer(path: str) -> None:
        unmount(path)
        (folder / "late.txt").write_bytes(b"late\n")

    with monkeypatch.context() as patched:
        patched.setattr("contextbase.workspaces.overlay.unmount", unmounted_under_a_writer)
        completed = await world.complete("ann")
    assert not completed.is_removed
    assert (folder / ".contextbase" / "refused" / "written-while-closed" / "late.txt").read_bytes() == b"late\n"
    assert await world.tree() == {"a.txt": b"a\n"}


@pytest.mark.parametrize(
    ("largest", "names"), [(4, {"base", "head", "yours"}), (9, {"base", "head", "yours", "markers"})]
)
async def test_the_sides_of_a_conflict_are_there_and_markers_unless_they_are_too_large(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch, largest: int, names: set[str]
) -> None:
    monkeypatch.setattr("contextbase.workspaces.settlement._LARGEST_MARKED", largest)
    await world.put({"a.txt": b"given\n"})
    folder = await world.create("ann")
    await world.put({"a.txt": b"theirs\n"})
    (folder / "a.txt").write_bytes(b"mine\n")
    await world.commit("ann", Wish(conflicts_in=ConflictsIn.FILES))
    sides = folder / ".contextbase" / "conflicts" / "a.txt"
    assert {side.name for side in sides.iterdir()} == names
    assert [(sides / name).read_bytes() for name in ("base", "head", "yours")] == [b"given\n", b"theirs\n", b"mine\n"]


class Killed(BaseException):
    """The end of the process, as far as what is in folders can tell."""


def killed_after(flag: Rename, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after the next rename of this kind, while a checkpoint is settled in the folder."""

    def dies(source: str, target: str, flags: Rename, *, source_folder: int, target_folder: int) -> None:
        rename(source, target, flags, source_folder=source_folder, target_folder=target_folder)
        if flags is flag:
            raise Killed

    monkeypatch.setattr("contextbase.workspaces.editor.rename", dies)


async def test_killed_while_a_refused_version_is_put_aside_it_is_found_there_and_the_file_is_as_it_was(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"rules/a.txt": b"fixed\n"})
    await world.rule("rules/**", Level.READ)
    folder = await world.create("ann")
    (folder / "rules" / "a.txt").write_bytes(b"mine\n")
    with monkeypatch.context() as patched:
        killed_after(Rename.NOREPLACE, patched)
        with pytest.raises(Killed):
            await world.commit("ann")
    first = await world.commit("ann")
    assert [one.answered.change.content is None for one in first.changes] == [False]  # no deletion made of it
    assert (folder / "rules" / "a.txt").read_bytes() == b"fixed\n"
    assert (folder / ".contextbase" / "refused" / "rules" / "a.txt").read_bytes() == b"mine\n"
    assert not (await world.complete("ann")).is_removed


async def test_killed_while_a_merge_comes_in_what_the_agent_wrote_meanwhile_keeps_the_folder(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        folder = await world.diverged("ann", b"newest\n", patched)
        killed_after(Rename.EXCHANGE, patched)
        with pytest.raises(Killed):
            await world.commit("ann")
    completed = await world.complete("ann")
    assert not completed.is_removed
    [reason] = completed.kept_because
    assert (folder / reason.partition(" ")[0]).read_bytes() == b"newest\n"
    assert await world.tree() == {"list.json": b'{\n  "a": 2,\n  "b": 2\n}\n'}


async def test_killed_after_others_rename_came_in_nothing_is_deleted_in_the_project(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"1\n2\n3\n"})
    folder = await world.create("ann")
    await world.write(rename_to("a.txt", "b.txt", await world.head()))
    (folder / "a.txt").write_bytes(b"ONE\n2\n3\n")

    def dies(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("contextbase.workspaces.editor.FolderEditor.add_note", dies)
        with pytest.raises(Killed):
            await world.commit("ann")
    assert [str(one.answered.change.path) for one in (await world.commit("ann")).changes] == ["a.txt"]
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"b.txt": b"ONE\n2\n3\n"}
