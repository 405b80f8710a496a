"""Where the file system has project quotas, an agent is stopped while it writes, and nobody else is."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.disks import DISKS, disk_with_quotas
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, Site, new_site, open_site

from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.errors import TooLarge
from contextbase.machine import examine
from contextbase.workspaces.model import Quota, Workspace
from contextbase.workspaces.quotas import ProjectQuotas
from contextbase.workspaces.syscalls import ProjectUse, bound_by_quotas, project_of, project_use, unmount

MEGABYTE = 1 << 20
QUOTA = Quota(bytes=4 * MEGABYTE, files=200)
FULL = r"No space left|quota exceeded"


@pytest.fixture(scope="module", params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with disk_with_quotas(tmp_path_factory.mktemp("disks") / "disk", request.param) as disk:
        disk.chmod(0o711)
        yield disk


@pytest.fixture(params=PROVIDERS)
async def site(request: pytest.FixtureRequest, disk: Path) -> AsyncIterator[Site]:
    async with open_site(disk / uuid4().hex, request.param, quota=QUOTA) as site:
        site.snapshots.commit({"a.txt": b"a\n", "folder/b.txt": b"b\n", "large": b"x" * (6 * MEGABYTE)})
        yield site
        for workspace_id in await site.provider.workspaces():
            await site.provider.cleanup(workspace_id)


@pytest.fixture
async def workspace(site: Site) -> Workspace:
    return await site.create()


class Killed(BaseException):
    """Nothing cleans up after it."""


def fill(folder: Path) -> None:
    """As an agent does: root, with which the tests run, may go beyond limits on ext4."""
    with bound_by_quotas(), (folder / "filler").open("wb", 0) as file, pytest.raises(OSError, match=FULL):
        write_pages(file, 10 * MEGABYTE // 4096)


def write_pages(file: FileIO, number: int) -> None:
    for _ in range(number):
        file.write(b"f" * 4096)


def make_files(folder: Path, number: int) -> None:
    for name in map(str, range(number)):
        (folder / name).touch()


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def project_at(site: Site, workspace: Workspace) -> int:
    with opened(await site.provider.work_folder(workspace.id)) as folder:
        return project_of(folder)


def use_of(site: Site, project: int) -> ProjectUse:
    with opened(site.root) as folder:
        return project_use(folder, project)


async def test_too_many_bytes_are_stopped_and_what_was_written_is_found(site: Site, workspace: Workspace) -> None:
    other = await site.create()
    (workspace.path / "kept").write_bytes(b"kept")
    fill(workspace.path)
    written = (workspace.path / "filler").stat().st_size
    assert QUOTA.bytes <= written <= QUOTA.bytes + 2 * MEGABYTE
    assert await site.changes(workspace) == {"created kept", "created filler"}
    with bound_by_quotas():
        (other.path / "filler").write_bytes(b"f" * (3 * MEGABYTE))
    assert await site.changes(other) == {"created filler"}


async def test_too_many_files_are_stopped(site: Site, workspace: Workspace) -> None:
    with bound_by_quotas(), pytest.raises(OSError, match=FULL):
        make_files(workspace.path, 2 * QUOTA.files)
    assert QUOTA.files <= len(await site.changes(workspace)) < 2 * QUOTA.files


async def test_a_large_file_that_was_given_cannot_be_copied_beyond_the_quota(workspace: Workspace) -> None:
    with bound_by_quotas(), pytest.raises(OSError, match=FULL):
        shutil.copyfile(workspace.path / "large", workspace.path / "copied")
    assert (workspace.path / "large").stat().st_size == 6 * MEGABYTE


async def test_in_a_full_workspace_files_can_be_removed_renamed_and_remade(site: Site, workspace: Workspace) -> None:
    fill(workspace.path)
    with bound_by_quotas():
        (workspace.path / "filler").unlink()
        (workspace.path / "folder" / "b.txt").rename(workspace.path / "moved.txt")
        shutil.rmtree(workspace.path / "folder")
        (workspace.path / "folder").mkdir()
        (workspace.path / "folder" / "c.txt").write_bytes(b"c")
        (workspace.path / "a.txt").write_bytes(b"changed")
    assert await site.changes(workspace) == {
        "renamed folder/b.txt -> moved.txt",
        "created folder/c.txt",
        "modified a.txt",
    }


async def test_a_full_workspace_can_be_closed_opened_and_removed(site: Site, workspace: Workspace) -> None:
    fill(workspace.path)
    project = await project_at(site, workspace)
    await site.provider.close_workspace(workspace.id)
    await site.provider.open_workspace(workspace.id)
    assert await site.changes(workspace) == {"created filler"}
    fill(workspace.path)
    with bound_by_quotas():
        (workspace.path / "filler").unlink()
        (workspace.path / "a.txt").write_bytes(b"changed")
    assert await site.changes(workspace) == {"modified a.txt"}
    assert use_of(site, project).most_bytes
    await site.provider.cleanup(workspace.id)
    assert not use_of(site, project).most_bytes
    assert not workspace.path.exists()


async def test_what_was_written_to_the_bare_folder_after_a_reboot_is_kept(disk: Path) -> None:
    async with open_site(disk / uuid4().hex, "overlay", quota=QUOTA) as site:
        workspace = await site.create()
        for _ in range(2):  # the second time into a folder that `open_workspace` made
            unmount(str(workspace.path))
            (workspace.path / "stray").write_bytes(b"stray")
            await site.provider.open_workspace(workspace.id)
        kept = workspace.path / ".contextbase" / "refused"
        assert {place.name for place in kept.iterdir()} == {"written-while-closed", "written-while-closed.2"}
        await site.provider.cleanup(workspace.id)


async def test_a_crash_between_project_and_limits_leaves_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = []

    def crash(_: ProjectQuotas, folder: str) -> None:
        with opened(Path(folder)) as descriptor:
            projects.append(project_of(descriptor))
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ProjectQuotas, "limit", crash)
        with pytest.raises(Killed):
            await site.create()
    [unfinished] = await site.provider.workspaces()
    restarted = new_site(site.root, site.provider.name, site.snapshots, quota=QUOTA)
    assert await restarted.provider.remove_unfinished(unfinished)
    assert projects[0] != 0
    assert not use_of(site, projects[0]).most_bytes
    assert await restarted.provider.workspaces() == ()
    fill((await restarted.create()).path)


async def test_a_removal_that_was_cut_short_is_finished_with_its_project(
    site: Site, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = await project_at(site, workspace)

    def crash(_: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("contextbase.workspaces.workspace_folders.remove_tree", crash)
        with pytest.raises(Killed):
            await site.provider.cleanup(workspace.id)
    restarted = new_site(site.root, site.provider.name, site.snapshots, quota=QUOTA)
    for workspace_id in await restarted.provider.workspaces():
        await restarted.provider.cleanup(workspace_id)
    assert not use_of(site, project).most_bytes
    assert await restarted.provider.workspaces() == ()


def test_those_who_take_projects_at_once_get_different_ones(disk: Path) -> None:
    """Each starts at the same number, as processes may that know nothing of each other."""
    root = disk / uuid4().hex
    root.mkdir()
    takers = [ProjectQuotas(QUOTA) for _ in range(4)]
    for taker in takers:
        taker._next = 7

    def take(number: int) -> int:
        folder = root / str(number)
        folder.mkdir()
        takers[number % 4].gather(str(folder))
        with opened(folder) as descriptor:
            return project_of(descriptor)

    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(take, range(40)))
    assert len(set(taken)) == 40
    shutil.rmtree(root)


def test_doctor_says_that_the_quota_is_held_while_writing(disk: Path) -> None:
    [found] = [each for each in examine(Settings(data=disk / "data")) if each.name == "quota"]
    assert found.answer == "yes"
    assert "while it is written" in found.detail


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, disk: Path, embedded_database_server: DatabaseAddress
) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(
            address,
            disk / uuid4().hex,
            request.param,
            workspace_max_bytes=QUOTA.bytes,
            workspace_max_files=QUOTA.files,
        ) as world,
    ):
        yield world


async def test_a_full_workspace_is_committed_and_completed_once_it_is_within_the_quota(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"1\n2\n3\n4\n5\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"1\n2\n3\n4\nFIVE\n")
    fill(folder)
    await world.put({"a.txt": b"ONE\n2\n3\n4\n5\n"})
    with pytest.raises(TooLarge, match="nothing is lost"):
        await world.complete("ann")
    os.truncate(folder / "filler", QUOTA.bytes - MEGABYTE)
    assert (await world.complete("ann")).is_removed
    tree = await world.tree()
    assert tree["a.txt"] == b"ONE\n2\n3\n4\nFIVE\n"
    assert tree.keys() == {"a.txt", "filler"}


async def test_a_merge_that_finds_no_room_in_the_folder_is_in_the_project(world: WorkspaceWorld) -> None:
    lines = [b"%d\n" % number for number in range(400_000)]
    await world.put({"a.txt": b"".join(lines)})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"".join([*lines[:-1], b"mine\n"]))
    await world.put({"a.txt": b"".join([b"theirs\n", *lines[1:]])})
    (folder / ".contextbaseignore").write_bytes(b"filler\n")
    fill(folder)
    committed = await world.commit("ann")
    assert {one.answered.answer.status for one in committed.changes} == {"merged", "written"}
    (folder / "filler").unlink()
    await world.commit("ann")
    assert (await world.complete("ann")).is_removed
    assert (await world.tree())["a.txt"] == b"".join([b"theirs\n", *lines[1:-1], b"mine\n"])
