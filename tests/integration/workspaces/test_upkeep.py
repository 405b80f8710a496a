"""Crashes and reboots: folders are found again, what ended is removed, what nobody knows is kept."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, mounts_below, read_tree, unmount_all

from contextbase.db.database import DatabaseAddress
from contextbase.errors import MachineProblem, NotFound
from contextbase.identity.levels import Level
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.pins import Pins
from contextbase.workspaces.repository import WorkspaceRepository, WorkspaceState


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", request.param) as world,
    ):
        yield world


async def test_after_a_reboot_every_open_workspace_has_its_folder_and_its_work(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folders = [await world.create(f"agent{number}") for number in range(3)]
    for folder in folders:
        (folder / "work.txt").write_bytes(b"work\n")
    unmount_all(world.services.data.path)
    swept = await world.agents.workspace_upkeep.sweep()
    assert (swept.opened, swept.lost, swept.orphans) == (3, 0, ())
    for folder in folders:
        assert read_tree(folder) == {"a.txt": b"a\n", "work.txt": b"work\n"}


async def test_a_folder_that_cannot_be_shown_again_does_not_keep_others_from_it(world: WorkspaceWorld) -> None:
    damaged, ended, whole = [await world.create(agent) for agent in ("ann", "ben", "cyd")]
    (whole / "work.txt").write_bytes(b"work\n")
    pins = world.services.data.path / "node" / "pins"
    for name in (damaged.name, str(uuid4())):
        (pins / name).unlink(missing_ok=True)
        (pins / name).write_bytes(b"no note of ours")
        kept = pins.parent / ("upper" if world.provider == "overlay" else "copy") / name
        for place in (kept, pins.parent / "workspaces" / name):
            place.mkdir(exist_ok=True)
        (kept / "manifest.json").touch()  # without one a copy was never finished
    async with world.services.database.connection() as connection:
        await WorkspaceRepository().end(connection, WorkspaceId(ended.name), WorkspaceState.ABANDONED)
    unmount_all(world.services.data.path)
    swept = await world.agents.workspace_upkeep.sweep()
    assert (swept.opened, swept.removed, swept.failed) == (1, 1, 2)
    assert read_tree(whole) == {"work.txt": b"work\n"}
    assert not ended.exists()


async def test_the_folder_of_one_that_ended_before_a_crash_is_removed(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    provider = (await world.site()).provider

    async def crashes(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(provider), "cleanup", crashes)
        with pytest.raises(KeyboardInterrupt):
            await world.complete("ann")
    assert (await world.agents.workspace_upkeep.sweep()).removed == 1
    assert not folder.exists()
    assert mounts_below(world.services.data.path) == []
    assert await world.tree() == {"a.txt": b"a\n"}


async def test_a_folder_that_cannot_be_removed_now_is_shown_to_nobody_and_removed_later(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    provider = (await world.site()).provider

    async def fails(*_: object) -> None:
        raise MachineProblem("The disk does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(type(provider), "cleanup", fails)
        assert (await world.complete("ann")).is_removed
    assert not folder.exists()
    assert (await world.agents.workspace_upkeep.sweep()).removed == 1
    assert await world.tree() == {"a.txt": b"a\n"}


async def test_a_folder_that_no_row_knows_is_kept_if_there_is_work_in_it(world: WorkspaceWorld) -> None:
    worked, empty = await world.create("ann"), await world.create("ben")
    (worked / "a.txt").write_bytes(b"a\n")
    async with world.services.database.connection() as connection:
        await connection.execute("DELETE FROM workspaces")
    swept = await world.agents.workspace_upkeep.sweep()
    assert ([str(orphan) for orphan in swept.orphans], swept.removed) == ([worked.name], 1)
    assert (worked / "a.txt").read_bytes() == b"a\n"
    assert not empty.exists()


async def test_what_a_crash_left_of_a_folder_that_was_being_removed_is_swept_up(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await world.create("ann")
    provider = (await world.site()).provider
    [workspace_id] = await provider.workspaces()
    async with world.services.database.connection() as connection:
        await connection.execute("DELETE FROM workspaces")

    def crashes(*_: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(Pins, "remove", crashes)
        with pytest.raises(RuntimeError):
            await provider.cleanup(workspace_id)
    swept = await world.agents.workspace_upkeep.sweep()
    assert (swept.removed, swept.orphans) == (1, ())
    assert await provider.workspaces() == ()
    assert not folder.exists()


async def test_a_workspace_whose_folder_is_gone_is_told_lost_and_another_can_be_made(world: WorkspaceWorld) -> None:
    await world.create("ann")
    unmount_all(world.services.data.path)
    for place in world.services.data.node.iterdir():
        for left in place.iterdir() if place.name in ("upper", "copy", "work", "workspaces", "pins") else ():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert (await world.agents.workspace_upkeep.sweep()).lost == 1
    with pytest.raises(NotFound):
        await world.commit("ann")
    [record] = await world.agents.workspaces.list(world.owner, world.project_id, state=None)
    assert record.state is WorkspaceState.LOST
    assert (await world.create("ann")).is_dir()


async def test_a_shared_view_follows_the_head_and_shows_no_more_than_may_be_seen(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "secret.txt": b"s\n"})
    await world.rule("secret.txt", Level.HIDDEN)
    views, ann = world.agents.shared_views, await world.agent("ann")
    shared = await views.open(ann, world.project_id)
    assert read_tree(shared.path) == {"a.txt": b"a\n"}
    assert (await views.open(await world.agent("ben"), world.project_id)).path == shared.path
    assert (await views.open(world.owner, world.project_id)).path != shared.path
    await world.put({"b.txt": b"b\n"})
    await views.follow()
    assert read_tree(shared.path) == {"a.txt": b"a\n", "b.txt": b"b\n"}
    folders = [path for path in (world.services.data.node / "views").iterdir() if not path.is_symlink()]
    assert len(folders) == 2  # what nobody is shown any more is gone
    if world.provider == "overlay":
        with pytest.raises(OSError, match="Read-only"):
            (shared.path / "a.txt").open("ab").close()
    else:
        assert not (shared.path / "a.txt").stat().st_mode & 0o222
    await world.rule("a.txt", Level.HIDDEN)
    await views.follow()
    assert read_tree(shared.path) == {"b.txt": b"b\n"}


async def test_layers_that_nothing_stands_on_go_when_room_is_wanted(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a" * 5000})
    folder = await world.create("ann")
    mirrors = (await world.site()).mirrors
    assert await mirrors.evict(cap=0) == 0
    assert read_tree(folder) == {"a.txt": b"a" * 5000}
    await world.complete("ann")
    assert await mirrors.evict(cap=10_000) == 0
    assert await mirrors.evict(cap=0) == 5000
