"""Folders made to lead us astray: nothing outside is read, nothing hangs, and what cannot be kept is named."""

import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.accounts import folder_of_no_root
from tests.support.require import require_program, require_root
from tests.support.workspaces import PROVIDERS, Site, open_site

from contextbase.errors import Conflict, MachineProblem
from contextbase.ids import ContentHash, TreePath
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import Reported, ScanLimits, ScanProblem, Workspace
from contextbase.workspaces.syscalls import unmount


@pytest.fixture(params=PROVIDERS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    limits = ScanLimits(pause=0.001, largest_file=1 << 30)
    async with open_site(tmp_path / "site", request.param, limits=limits) as site:
        site.snapshots.commit({"a.txt": b"a\n", "folder/b.txt": b"b\n", "folder/c.txt": b"c\n"})
        yield site


@pytest.fixture
async def workspace(site: Site) -> Workspace:
    return await site.create()


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """For tests that are about numbers, not disks."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def problems(reported: tuple[Reported, ...]) -> list[tuple[bytes, ScanProblem]]:
    return [(each.name, each.problem) for each in reported]


async def test_links_to_the_outside_stay_links(site: Site, workspace: Workspace, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"outside")
    (workspace.path / "shadow").symlink_to("/etc/shadow")
    (workspace.path / "a.txt").unlink()
    (workspace.path / "a.txt").symlink_to(secret / "key")
    (workspace.path / "outside").symlink_to(secret)
    found = {change.path: change.content for change in (await site.detect(workspace)).changes}
    assert found.keys() == {"shadow", "a.txt", "outside"}
    content = found[TreePath("a.txt")]
    assert content is not None
    assert content.hash == ContentHash.of(os.fsencode(secret / "key"))
    with Folder(await site.provider.work_folder(workspace.id)) as folder:
        for path in ("a.txt", "outside/key", "shadow"):
            with pytest.raises(OSError):  # noqa: PT011 - of which kind is the system's business
                folder.read(path, most=100)


async def test_a_hard_link_to_the_outside_cannot_be_made(workspace: Workspace, tmp_path: Path, site: Site) -> None:
    """Across a mount the kernel refuses it. In a plain copy it can only be a file the agent may link anyway; that it
    is removed with the folder does not touch the other name."""
    (tmp_path / "outside").write_bytes(b"outside")
    if site.provider.name == "overlay":
        with pytest.raises(OSError, match="cross-device"):
            os.link(tmp_path / "outside", workspace.path / "inside")
    else:
        os.link(tmp_path / "outside", workspace.path / "inside")
    await site.provider.cleanup(workspace.id)
    assert (tmp_path / "outside").read_bytes() == b"outside"


async def test_a_link_swapped_for_a_folder_while_we_look_never_leads_out(
    site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(20):
        (outside / f"secret{number}").write_bytes(b"outside")
    place, spare = workspace.path / "swapped", workspace.path / "spare"
    place.mkdir()
    for number in range(20):
        (place / f"mine{number}").write_bytes(b"inside")
    spare.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        turn = workspace.path / "turn"
        while not stop.is_set():
            place.rename(turn)
            spare.rename(place)
            place.rename(spare)
            turn.rename(place)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(40):
            found = await site.detect(workspace)
            assert not [change for change in found.changes if "secret" in change.path]
    finally:
        stop.set()
        swapping.join()
    assert len([path for path in (await site.changes(workspace)) if "mine" in path]) == 20


async def test_pipes_sockets_and_devices_are_named_and_do_not_hang_us(site: Site, workspace: Workspace) -> None:
    (workspace.path / "a.txt").unlink()
    os.mkfifo(workspace.path / "a.txt")
    with socket.socket(socket.AF_UNIX) as listener, _inside(workspace.path):
        listener.bind("socket")
    found = await site.detect(workspace)
    assert found.changes == ()  # a.txt is not read as deleted: something stands there
    assert problems(found.reported) == [(b"a.txt", ScanProblem.SPECIAL), (b"socket", ScanProblem.SPECIAL)]


async def test_names_no_tree_can_hold_are_named_and_kept(site: Site, workspace: Workspace) -> None:
    root = os.fsencode(workspace.path)
    names = [b"new\nline", b"not \xff utf-8", b"back\\slash", b".ContextBase"]
    for name in names:
        os.close(os.open(root + b"/" + name, os.O_CREAT | os.O_WRONLY))
    (workspace.path / os.fsdecode(b"folder\xfe") / "below").mkdir(parents=True)
    found = await site.detect(workspace)
    assert found.changes == ()
    assert {each.name for each in found.reported} == {*names, b"folder\xfe"}
    assert {each.problem for each in found.reported} == {ScanProblem.NAME}
    await site.provider.cleanup(workspace.id)


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_ten_thousand_folders_deep_is_named_once_and_removed(kind: str, memory_folder: Path) -> None:
    async with open_site(memory_folder / "site", kind) as site:
        workspace = await site.create()
        _make_deep(workspace.path, depth=10_000)
        with _few_open_files():
            found = await site.detect(workspace)
            assert found.changes == ()
            assert [each.problem for each in found.reported] == [ScanProblem.NAME]
            await site.provider.cleanup(workspace.id)
        assert not workspace.path.exists()


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_many_files_in_one_folder_are_all_found(kind: str, memory_folder: Path) -> None:
    async with open_site(memory_folder / "site", kind) as site:
        workspace = await site.create()
        with _inside(workspace.path):
            for number in range(100_000):
                os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY, 0o644))
        assert len((await site.detect(workspace)).changes) == 100_000
        await site.provider.cleanup(workspace.id)


async def test_a_huge_sparse_file_is_named_and_a_large_one_streamed(site: Site, workspace: Workspace) -> None:
    for name, size in (("huge", 10 << 30), ("large", 64 << 20)):
        with (workspace.path / name).open("wb") as file:
            file.truncate(size)
    found = await site.detect(workspace)
    assert problems(found.reported) == [(b"huge", ScanProblem.TOO_LARGE)]
    assert [(change.path, change.content.size) for change in found.changes if change.content] == [("large", 64 << 20)]


async def test_a_file_that_is_being_written_is_tried_again_and_then_named(site: Site, workspace: Workspace) -> None:
    path = workspace.path / "log"
    path.touch()
    os.truncate(path, 64 << 20)
    with _appending(path):
        found = await site.detect(workspace)
    assert problems(found.reported) == [(b"log", ScanProblem.BUSY)]
    assert await site.changes(workspace) == {"created log"}


async def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path) -> None:
    require_root()
    with _small_disk(tmp_path / "disk") as disk:
        async with open_site(disk / "site", "overlay") as site:
            site.snapshots.commit({"a.txt": b"a\n", "big": b"x" * 200_000})
            workspace = await site.create()
            (workspace.path / "kept").write_bytes(b"kept")
            with pytest.raises(OSError, match="No space left"):
                (workspace.path / "filler").write_bytes(b"f" * (2 << 20))
            with pytest.raises(OSError, match="No space left"):
                (workspace.path / "big").chmod(0o755)  # no room to copy it up
            assert await site.changes(workspace) == {"created kept", "created filler"}
            await site.provider.cleanup(workspace.id)


async def test_a_snapshot_that_does_not_fit_takes_no_room(tmp_path: Path) -> None:
    require_root()
    with _small_disk(tmp_path / "disk") as disk:
        async with open_site(disk / "site", "overlay") as site:
            site.snapshots.commit({"a.txt": b"a\n", "big": b"x" * (2 << 20)})
            with pytest.raises(MachineProblem, match="is full"):
                await site.create()
            site.snapshots.commit({"big": None})
            workspace = await site.create()
            (workspace.path / "new").write_bytes(b"x" * (512 << 10))
            assert await site.changes(workspace) == {"created new"}


async def test_a_workspace_in_use_is_not_pulled_away(site: Site, workspace: Workspace) -> None:
    with (workspace.path / "a.txt").open("ab") as file:
        file.write(b"work")
        file.flush()
        with pytest.raises(Conflict):
            await site.provider.cleanup(workspace.id)
        assert (workspace.path / "a.txt").read_bytes() == b"a\nwork"
    await site.provider.cleanup(workspace.id)


@pytest.mark.parametrize("mode", [0, 0o500])
async def test_an_agent_that_shuts_itself_and_a_server_without_root_out_stops_nothing(mode: int) -> None:
    with folder_of_no_root() as place:
        async with open_site(place / "site", "copy") as site:
            site.snapshots.commit({"a.txt": b"a\n", "folder/b.txt": b"b\n"})
            workspace = await site.create()
            (workspace.path / "folder" / "b.txt").write_bytes(b"mine\n")
            (workspace.path / "folder").chmod(mode)
            workspace.path.chmod(mode)
            await site.provider.close_workspace(workspace.id)
            found = await site.detect(workspace)
            assert (len(found.changes), len(found.reported)) == ((1, 0) if mode else (0, 1))
            await site.provider.cleanup(workspace.id)
            assert not workspace.path.exists()


@contextmanager
def _appending(path: Path) -> Iterator[None]:
    """Another process writes to the file, without end."""
    code = "import sys, time\nwith open(sys.argv[1], 'ab', 0) as file:\n  while file.write(b'more'): time.sleep(0.001)"
    size = path.stat().st_size
    writing = subprocess.Popen([sys.executable, "-c", code, path])
    try:
        for _ in range(1000):
            if path.stat().st_size > size:
                break
            time.sleep(0.01)
        yield
    finally:
        writing.kill()
        writing.wait()


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mount = require_program("mount", "install util-linux")
    subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        unmount(str(folder))


def _make_deep(folder: Path, *, depth: int) -> None:
    with _inside(folder):
        for _ in range(depth):
            Path("d").mkdir()
            os.chdir("d")


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _few_open_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
