"""Files of an open workspace: beside programs that work in it, and never outside of it."""

import asyncio
import os
import random
import shutil
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.contracts.test_places import NOW, pieces
from tests.support.disks import xfs_disk
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world

from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict, ContextbaseError, Forbidden, InvalidPath, NotFound, TooLarge
from contextbase.files.file_tree import FolderNode
from contextbase.files.model import EXTERNAL, FileAction, OperationContext
from contextbase.files.ports import Place
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.ids import ContentHash, TreePath
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import Position, Scope, StreamEvent
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace


async def place_of(world: WorkspaceWorld, name: str = "ann") -> tuple[Place, Path]:
    folder = await world.create(name)
    return world.agents.files.workspace(await world.agent(name), NamedWorkspace(world.project_id)), folder


async def text(place: Place, path: str) -> bytes:
    async with place.opened(TreePath(path)) as opened:
        return b"".join([piece async for piece in opened.content.stream(0, opened.content.size)])


async def events_of(world: WorkspaceWorld, name: str = "ann") -> list[StreamEvent]:
    record = await world.agents.workspaces.path(await world.agent(name), NamedWorkspace(world.project_id))
    readable = ReadableScope(scope=Scope.workspace(record.id))
    head = await world.services.streams.head(readable)
    page = await world.services.streams.read(readable, Position(epoch=head.epoch), limit=10_000)
    return list(page.events)


def listed(tree: FolderNode) -> set[str]:
    found = {path for path, _ in tree.walk() if path}
    for path, folder in tree.walk():
        found |= {f"{path}/{name}" if path else name for name in folder.files}
    return found


async def test_what_is_written_is_a_plain_file_of_the_agents_and_uncommitted(world: WorkspaceWorld) -> None:
    await world.put({"run.sh": b"echo one\n"})
    place, folder = await place_of(world)
    (folder / "run.sh").chmod(0o755)
    await place.write(TreePath("run.sh"), pieces(b"echo two\n"), NOW)
    await place.write(TreePath("new/file.txt"), pieces(b"new"), NOW)
    assert (folder / "run.sh").read_bytes() == b"echo two\n"
    owner = (await world.site()).provider and world.agents.workspaces.node.owner
    for path in ("run.sh", "new", "new/file.txt"):
        status = (folder / path).stat()
        assert (status.st_uid, status.st_gid) == (owner.uid, owner.gid)
    assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "new/file.txt").stat().st_mode) == 0o644
    project = world.agents.files.project(world.owner, world.project_id)
    assert await text(project, "run.sh") == b"echo one\n"
    with pytest.raises(NotFound):
        await project.details(TreePath("new/file.txt"))
    committed = await world.commit("ann")
    assert {one.answered.answer.status for one in committed.changes} == {ChangeStatus.WRITTEN}
    assert await text(project, "run.sh") == b"echo two\n"


async def test_programs_changes_show_at_once_and_a_sync_registers_them(world: WorkspaceWorld) -> None:
    await world.put({"kept.txt": b"kept", "changed.txt": b"old", "gone.txt": b"gone", "folder/a": b"a"})
    place, folder = await place_of(world)
    (folder / "changed.txt").write_bytes(b"new")
    (folder / "gone.txt").unlink()
    (folder / "made/deep").mkdir(parents=True)
    (folder / "made/deep/file").write_bytes(b"made")
    (folder / "empty").mkdir()
    (folder / "folder").rename(folder / "moved")
    os.utime(folder / "kept.txt", (1, 1))
    names = {"kept.txt", "changed.txt", "made", "made/deep", "made/deep/file", "empty", "moved", "moved/a"}
    assert listed(await place.tree()) == names
    assert (await place.history(None, before=None, limit=100)).operations == ()
    result = await place.sync(OperationContext(message_id="after-run"))
    assert {(one.action, str(one.path), one.old_hash, one.new_hash) for one in result.registered} == {
        (FileAction.WRITE, "changed.txt", ContentHash.of(b"old"), ContentHash.of(b"new")),
        (FileAction.DELETE, "gone.txt", ContentHash.of(b"gone"), None),
        (FileAction.WRITE, "made/deep/file", None, ContentHash.of(b"made")),
        (FileAction.MAKE_FOLDER, "empty", None, None),
        (FileAction.WRITE, "moved/a", None, ContentHash.of(b"a")),
        (FileAction.DELETE, "folder/a", ContentHash.of(b"a"), None),
        (FileAction.DELETE, "folder", None, None),
    }
    page = await place.history(None, before=None, limit=100)
    assert [one.action for one in page.operations].count(FileAction.SYNC) == 1
    told = [one for one in page.operations if one.action is not FileAction.SYNC]
    assert {one.operator_type for one in told} == {EXTERNAL}
    assert {one.principal for one in told} == {"agent:ann"}
    assert {one.message_id for one in told} == {"after-run"}
    assert (await place.sync(NOW)).registered == ()
    (folder / "made/deep/file").write_bytes(b"more")
    [again] = (await place.sync(NOW)).registered
    assert (again.old_hash, again.new_hash) == (ContentHash.of(b"made"), ContentHash.of(b"more"))


async def test_the_register_follows_everything_that_programs_and_requests_do(world: WorkspaceWorld) -> None:
    """Whatever happened, after a sync the next one finds nothing."""
    randomness = random.Random(7)
    await world.put({path: path.encode() for path in ("a/b.txt", "a/d/a", "d/d/.c", "b.txt", "ü/a")})
    place, folder = await place_of(world)
    for _ in range(15):
        for _ in range(randomness.randrange(6)):
            _random_edit(randomness, folder)
        for _ in range(randomness.randrange(3)):
            await _random_request(randomness, place)
        await place.sync(NOW)
        assert (await place.sync(NOW)).registered == ()


def _random_edit(randomness: random.Random, folder: Path) -> None:
    """As a program does it, that knows nothing of us."""
    places = [path for path in folder.rglob("*") if ".contextbase" not in path.parts]
    path = randomness.choice(places) if places else folder / "a"
    new = randomness.choice([folder, *(place for place in places if place.is_dir())]) / f"n{randomness.randrange(99)}"
    with suppress(OSError):
        match randomness.randrange(7):
            case 0:
                path.write_bytes(randomness.randbytes(3))
            case 1:
                new.write_bytes(randomness.randbytes(3))
            case 2:
                path.unlink()
            case 3:
                shutil.rmtree(path)
            case 4:
                path.rename(new)
            case 5:
                new.symlink_to("a")
            case _:
                new.mkdir()


async def _random_request(randomness: random.Random, place: Place) -> None:
    paths = sorted(listed(await place.tree())) or ["a"]
    path, other = TreePath(randomness.choice(paths)), TreePath(f"new{randomness.randrange(1000)}")
    with suppress(ContextbaseError):
        match randomness.randrange(4):
            case 0:
                await place.write(path, pieces(randomness.randbytes(4)), NOW)
            case 1:
                await place.rename(path, other, NOW)
            case 2:
                await place.delete(path, NOW, recursive=True)
            case _:
                await place.make_folder(other, NOW)


async def test_every_operation_is_told_to_the_workspaces_readers_alone(world: WorkspaceWorld) -> None:
    place, folder = await place_of(world)
    await place.write(TreePath("a.txt"), pieces(b"a"), OperationContext(message_id="m1"))
    await place.rename(TreePath("a.txt"), TreePath("b.txt"), NOW)
    (folder / "c.txt").write_bytes(b"c")
    await place.sync(NOW)
    events = await events_of(world)
    assert [(event.kind, event.path) for event in events] == [
        ("file.write", "a.txt"),
        ("file.rename", "b.txt"),
        ("file.write", "c.txt"),
        ("file.sync", None),
    ]
    assert events[0].payload["message_id"] == "m1"
    assert events[0].payload["hash"] == str(ContentHash.of(b"a"))
    heads = await world.services.feed.heads(world.project_id)
    assert heads.event == 0, "a project's readers do not learn of what is not committed"


async def test_history_and_events_outlive_the_workspace(world: WorkspaceWorld) -> None:
    place, _ = await place_of(world)
    await place.write(TreePath("a.txt"), pieces(b"a"), NOW)
    await world.complete("ann")
    async with world.services.database.connection() as connection:
        rows = await connection.fetch("SELECT path, new_hash, origin FROM file_operations")
    assert [(row["path"], row["new_hash"]) for row in rows] == [("a.txt", ContentHash.of(b"a"))]


async def test_each_write_is_audited(world: WorkspaceWorld) -> None:
    place, _ = await place_of(world)
    await place.write(TreePath("a.txt"), pieces(b"a"), OperationContext(message_id="m1"))
    await place.write(TreePath("a.txt"), pieces(b"b"), NOW)
    async with world.services.database.connection() as connection:
        rows = await connection.fetch("SELECT * FROM audit WHERE action = 'file.write' ORDER BY number")
    assert [(row["path"], row["old_hash"], row["new_hash"]) for row in rows] == [
        ("a.txt", None, ContentHash.of(b"a")),
        ("a.txt", ContentHash.of(b"a"), ContentHash.of(b"b")),
    ]
    assert '"message_id":"m1"' in rows[0]["details"]
    assert {row["operator_type"] for row in rows} == {"agent"}


@pytest.mark.parametrize("route", ["write", "read", "list", "delete", "rename", "rename to", "mkdir", "upload", "tar"])
async def test_no_link_leads_out_of_the_folder(world: WorkspaceWorld, tmp_path: Path, route: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    place, folder = await place_of(world)
    (folder / "out").symlink_to(outside)
    (folder / "mine").write_bytes(b"mine")
    inside = TreePath("out/secret")
    calls = {
        "write": lambda: place.write(inside, pieces(b"x"), NOW),
        "read": lambda: text(place, inside),
        "list": lambda: place.folder(TreePath("out")),
        "delete": lambda: place.delete(inside, NOW, recursive=True),
        "rename": lambda: place.rename(inside, TreePath("b"), NOW),
        "rename to": lambda: place.rename(TreePath("mine"), TreePath("out/mine"), NOW),
        "mkdir": lambda: place.make_folder(TreePath("out/new"), NOW),
        "upload": lambda: place.add(TreePath("out"), "new", pieces(b"x"), NOW),
        "tar": lambda: _archive(place, TreePath("out/secret")),
    }
    with pytest.raises((InvalidPath, NotFound)):
        await calls[route]()
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": b"secret"}
    assert (folder / "mine").read_bytes() == b"mine"


async def _archive(place: Place, path: TreePath) -> bytes:
    from contextbase.history.archive_writers import ArchiveFormat

    async with place.archive(path, ArchiveFormat.TAR) as stream:
        return b"".join([piece async for piece in stream])


async def test_a_link_is_read_as_its_target_and_replaced_as_itself(world: WorkspaceWorld, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    place, folder = await place_of(world)
    (folder / "link").symlink_to(outside)
    assert await text(place, "link") == os.fsencode(outside)
    assert b"secret" not in await _archive(place, TreePath("link"))
    await place.write(TreePath("link"), pieces(b"mine"), NOW)
    assert outside.read_bytes() == b"secret"
    assert not (folder / "link").is_symlink()
    assert (folder / "link").read_bytes() == b"mine"


async def test_a_pipe_or_socket_does_not_hang_anything(world: WorkspaceWorld) -> None:
    place, folder = await place_of(world)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{descriptor}/socket")
        finally:
            os.close(descriptor)
        assert listed(await place.tree()) == set()
        for name in ("pipe", "socket"):
            with pytest.raises(Conflict):
                await text(place, name)
            with pytest.raises(Conflict):
                await place.write(TreePath(name), pieces(b"x"), NOW)
        assert (await place.sync(NOW)).registered == ()


async def test_what_breaks_off_leaves_nothing_behind(world: WorkspaceWorld) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"a" * (3 << 20)
        raise ConnectionResetError

    place, folder = await place_of(world)
    with pytest.raises((ContextbaseError, ConnectionResetError)):
        await place.write(TreePath("a.txt"), broken(), NOW)
    assert listed(await place.tree()) == set()
    assert list((folder / ".contextbase/tmp").iterdir()) == []
    assert (await place.history(None, before=None, limit=10)).operations == ()


async def test_who_ends_a_workspace_waits_for_those_who_read_in_it(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"abc"})
    place, _ = await place_of(world)
    async with place.opened(TreePath("a.txt")) as opened:
        ending = asyncio.create_task(world.complete("ann"))
        entering = asyncio.create_task(place.tree())
        assert [piece async for piece in opened.content.stream(0, 3)] == [b"abc"]
        await asyncio.wait({ending}, timeout=0.2)
        assert not ending.done()
    assert (await ending).is_removed
    with suppress(NotFound):  # it came before or after
        await entering
    with pytest.raises(NotFound):
        await place.tree()


async def test_reads_go_on_while_a_commit_is_under_way(world: WorkspaceWorld) -> None:
    place, folder = await place_of(world)
    (folder / "a.txt").write_bytes(b"a")
    record = await world.agents.workspaces.path(await world.agent("ann"), NamedWorkspace(world.project_id))
    async with world.agents.workspaces.alone(record.id):  # as a commit holds it
        assert listed(await place.tree()) == {"a.txt"}
        await place.write(TreePath("b.txt"), pieces(b"b"), NOW)


async def test_nobody_reaches_the_workspace_of_another(world: WorkspaceWorld) -> None:
    place, _ = await place_of(world)
    await place.write(TreePath("a.txt"), pieces(b"a"), NOW)
    bob = await world.agent("bob")
    files = world.agents.files
    with pytest.raises(Forbidden):
        await files.workspace(bob, NamedWorkspace(world.project_id, "agent:ann")).tree()
    with pytest.raises(NotFound):
        await files.workspace(bob, NamedWorkspace(world.project_id)).tree()
    assert listed(await files.workspace(world.owner, NamedWorkspace(world.project_id, "agent:ann")).tree()) == {"a.txt"}


async def test_who_writes_into_anothers_workspace_is_named(world: WorkspaceWorld) -> None:
    await world.create("ann")
    place = world.agents.files.workspace(world.owner, NamedWorkspace(world.project_id, "agent:ann"))
    await place.write(TreePath("a.txt"), pieces(b"a"), NOW)
    [told] = (await place.history(None, before=None, limit=10)).operations
    assert (told.principal, told.operator_type) == ("user:owner", "api")


async def test_hidden_files_are_in_no_view_of_a_workspace(world: WorkspaceWorld) -> None:
    await world.put({"open/a": b"a", "secret/b": b"b", "open/secret.txt": b"c"})
    await world.rule("secret/**", Level.HIDDEN)
    await world.rule("open/secret.txt", Level.HIDDEN)
    place, _ = await place_of(world)
    assert listed(await place.tree()) == {"open", "open/a"}
    assert (await world.agents.files.info(place)).files == 1
    for path in ("secret", "secret/b", "open/secret.txt"):
        with pytest.raises(NotFound):
            await place.details(TreePath(path))


async def test_a_real_program_writes_while_it_is_listed_and_read(world: WorkspaceWorld) -> None:
    """Whole files at every moment: what was put by us is never half there for a program, nor the other way round."""
    place, folder = await place_of(world)
    await place.write(TreePath("shared"), pieces(b"0" * 5000, 5000), NOW)
    script = (
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "seen = set()\n"
        "while b'9' not in seen:\n"
        "    body = path.read_bytes()\n"
        "    assert len(body) == 5000 and len(set(body)) == 1, body[:10]\n"
        "    seen.add(body[:1])\n"
    )
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(folder / "shared"))
    for digit in b"123456789":
        await place.write(TreePath("shared"), pieces(bytes([digit]) * 5000, 777), NOW)
    assert await program.wait() == 0


async def test_a_workspace_can_be_written_with_credentials_held_back_as_before(world: WorkspaceWorld) -> None:
    place, _ = await place_of(world)
    await place.write(TreePath("id_rsa"), pieces(b"-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"), NOW)
    committed = await world.commit("ann", Wish())
    assert not committed.changes
    assert [reported.problem for reported in committed.reported] == ["secret"]


async def test_a_full_disk_is_told_and_leaves_nothing(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(4 << 20)

    with xfs_disk(tmp_path / "disk") as disk:
        async with (
            database_copy(embedded_database_server, "contextbase_template") as address,
            open_world(address, disk / "data", "overlay") as world,
        ):
            place, folder = await place_of(world)
            with pytest.raises(TooLarge):
                await place.write(TreePath("a.bin"), endless(), NOW)
            assert listed(await place.tree()) == set()
            assert list((folder / ".contextbase/tmp").iterdir()) == []
            await place.write(TreePath("a.txt"), pieces(b"there is room again"), NOW)
