"""What every place for files must do, be it a project or an open workspace."""

import asyncio
import io
import tarfile
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world

from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict, InvalidInput, InvalidPath, NotFound, PreconditionFailed
from contextbase.files.model import FileAction, OperationContext, OperationStatus
from contextbase.files.ports import Place
from contextbase.files.service import FileService
from contextbase.gate.model import Expectation
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import NamedWorkspace

PLACES = ["project", "overlay", "copy"]
GIVEN = {
    "readme.md": b"# Read me\n",
    "docs/a.txt": b"one\ntwo\n",
    "docs/deep/b.bin": b"\x00\x01\xff",
    "docs/c.json": b"{}",
}
NOW = OperationContext()


@dataclass
class PlaceWorld:
    world: WorkspaceWorld
    place: Place
    kind: str

    @property
    def files(self) -> FileService:
        return self.world.agents.files

    async def write(self, path: str, body: bytes, context: OperationContext = NOW) -> None:
        await self.place.write(TreePath(path), pieces(body), context)

    async def content(self, path: str) -> bytes:
        async with self.place.opened(TreePath(path)) as opened:
            found = opened.content
            return b"".join([piece async for piece in found.stream(0, found.size)])

    async def names(self, folder: str | None = None) -> list[str]:
        page = await self.files.list(self.place, None if folder is None else TreePath(folder))
        return [entry.path for entry in page.entries]


async def pieces(body: bytes, size: int = 3) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def expecting(*bodies: bytes) -> OperationContext:
    return OperationContext(expects=Expectation(contents=frozenset(map(ContentHash.of, bodies))))


@pytest.fixture(params=PLACES)
async def places(
    request: pytest.FixtureRequest, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[PlaceWorld]:
    provider = "copy" if request.param == "copy" else "overlay"
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", provider) as world,
    ):
        await world.put(dict(GIVEN))
        agent = await world.agent("ann")
        files = world.agents.files
        if request.param == "project":
            place = files.project(agent, world.project_id)
        else:
            await world.create("ann")
            place = files.workspace(agent, NamedWorkspace(world.project_id))
        yield PlaceWorld(world=world, place=place, kind=request.param)


async def test_a_folder_lists_its_entries_by_name(places: PlaceWorld) -> None:
    assert await places.names() == ["docs", "readme.md"]
    assert await places.names("docs") == ["docs/a.txt", "docs/c.json", "docs/deep"]
    page = await places.files.list(places.place, TreePath("docs"))
    assert [(entry.kind, entry.size, entry.mime) for entry in page.entries] == [
        (Kind.FILE, 8, "text/plain"),
        (Kind.FILE, 2, "application/json"),
        (Kind.DIRECTORY, 0, ""),
    ]
    assert all(entry.modified_at is not None for entry in page.entries)


async def test_a_list_goes_on_where_a_page_ended(places: PlaceWorld) -> None:
    first = await places.files.list(places.place, TreePath("docs"), limit=2)
    assert first.next_after == "c.json"
    rest = await places.files.list(places.place, TreePath("docs"), after=first.next_after, limit=2)
    assert [entry.path for entry in rest.entries] == ["docs/deep"]
    assert rest.next_after is None


@pytest.mark.parametrize("path", ["nowhere", "readme.md", "docs/nowhere", "docs/deep/b.bin/c"])
async def test_what_is_not_a_folder_cannot_be_listed(places: PlaceWorld, path: str) -> None:
    with pytest.raises(NotFound):
        await places.names(path)


async def test_the_tree_and_the_sums_follow_what_is_written(places: PlaceWorld) -> None:
    info = await places.files.info(places.place)
    assert (info.files, info.folders, info.disk_usage) == (4, 2, sum(map(len, GIVEN.values())))
    await places.write("new/deeper/file.txt", b"12345")
    await places.place.delete(TreePath("docs/deep"), NOW, recursive=True)
    tree = await places.place.tree()
    assert [path for path, _ in tree.walk()] == ["", "docs", "new", "new/deeper"]
    after = await places.files.info(places.place)
    assert (after.files, after.folders) == (4, 3)
    assert after.disk_usage == info.disk_usage + 5 - 3
    assert info.last_modified is not None
    assert after.last_modified is not None
    assert after.last_modified >= info.last_modified
    assert (await places.place.usage()).disk_usage == after.disk_usage


async def test_what_was_written_is_read_back(places: PlaceWorld) -> None:
    result = await places.place.write(TreePath("docs/a.txt"), pieces(b"changed"), NOW)
    assert result.status is OperationStatus.WRITTEN
    assert (result.old_hash, result.new_hash) == (ContentHash.of(b"one\ntwo\n"), ContentHash.of(b"changed"))
    assert await places.content("docs/a.txt") == b"changed"
    details = await places.place.details(TreePath("docs/a.txt"))
    assert (details.hash, details.entry.size) == (ContentHash.of(b"changed"), 7)
    again = await places.place.write(TreePath("docs/a.txt"), pieces(b"changed"), NOW)
    assert again.status is OperationStatus.UNCHANGED


async def test_slices_are_read_by_characters(places: PlaceWorld) -> None:
    await places.write("long.txt", ("äöü" * 4000).encode())
    opened, found = await places.files.read(places.place, TreePath("long.txt"), offset=4000, length=10**6)
    assert found.content == ("äöü" * 4000)[4000:9000]
    assert (found.start, found.total, found.read_length) == (4000, 12000, 5000)
    assert opened.details.entry.mime == "text/plain"
    _, binary = await places.files.read(places.place, TreePath("docs/deep/b.bin"), offset=1)
    assert (binary.encoding, binary.content, binary.total) == ("base64", "Af8=", 3)
    await places.write("empty", b"")
    _, empty = await places.files.read(places.place, TreePath("empty"))
    assert (empty.encoding, empty.content, empty.total) == ("text", "", 0)


async def test_a_folder_has_no_content(places: PlaceWorld) -> None:
    with pytest.raises(InvalidInput):
        await places.content("docs")
    with pytest.raises(NotFound):
        await places.content("nowhere")
    details = await places.place.details(TreePath("docs"))
    assert (details.entry.kind, details.hash) == (Kind.DIRECTORY, None)


async def test_an_expectation_decides_whether_anything_is_written(places: PlaceWorld) -> None:
    with pytest.raises(PreconditionFailed):
        await places.write("readme.md", b"mine", expecting(b"something else"))
    with pytest.raises(PreconditionFailed):
        await places.write("readme.md", b"mine", OperationContext(expects=Expectation(is_none=True)))
    with pytest.raises(PreconditionFailed):
        await places.write("nowhere", b"mine", expecting(b"x"))
    with pytest.raises(PreconditionFailed):
        await places.place.delete(TreePath("readme.md"), expecting(b"x"))
    with pytest.raises(PreconditionFailed):
        await places.place.rename(TreePath("readme.md"), TreePath("other"), expecting(b"x"))
    assert await places.content("readme.md") == GIVEN["readme.md"]
    assert await places.names() == ["docs", "readme.md"]
    await places.write("readme.md", b"mine", expecting(b"x", GIVEN["readme.md"]))
    await places.write("new", b"mine", OperationContext(expects=Expectation(is_none=True)))
    await places.place.delete(TreePath("new"), expecting(b"mine"))
    assert await places.names() == ["docs", "readme.md"]


async def test_deleting_a_folder_with_something_in_it_has_to_be_said(places: PlaceWorld) -> None:
    with pytest.raises(Conflict):
        await places.place.delete(TreePath("docs"), NOW)
    assert await places.content("docs/a.txt") == GIVEN["docs/a.txt"]
    await places.place.delete(TreePath("docs"), NOW, recursive=True)
    assert await places.names() == ["readme.md"]
    with pytest.raises(NotFound):
        await places.place.delete(TreePath("docs"), NOW, recursive=True)


async def test_files_and_folders_are_renamed_with_all_in_them(places: PlaceWorld) -> None:
    await places.place.rename(TreePath("readme.md"), TreePath("top/README.md"), NOW)
    await places.place.rename(TreePath("docs"), TreePath("texts"), NOW)
    tree = await places.place.tree()
    assert [path for path, _ in tree.walk()] == ["", "texts", "texts/deep", "top"]
    assert await places.content("texts/deep/b.bin") == GIVEN["docs/deep/b.bin"]
    assert await places.content("top/README.md") == GIVEN["readme.md"]
    with pytest.raises(NotFound):
        await places.place.rename(TreePath("docs"), TreePath("elsewhere"), NOW)


async def test_nothing_is_renamed_over_something(places: PlaceWorld) -> None:
    for target in ("docs/a.txt", "docs"):
        with pytest.raises(Conflict):
            await places.place.rename(TreePath("readme.md"), TreePath(target), NOW)
    assert await places.content("docs/a.txt") == GIVEN["docs/a.txt"]


async def test_a_folder_can_be_made_and_is_there_with_nothing_in_it(places: PlaceWorld) -> None:
    made = await places.place.make_folder(TreePath("empty/inner"), NOW)
    assert made.status is OperationStatus.WRITTEN
    assert await places.names("empty") == ["empty/inner"]
    assert await places.names("empty/inner") == []
    again = await places.place.make_folder(TreePath("empty/inner"), NOW)
    assert again.status is OperationStatus.UNCHANGED
    with pytest.raises(Conflict):
        await places.place.make_folder(TreePath("readme.md"), NOW)


async def test_no_file_stands_where_a_folder_is_or_below_a_file(places: PlaceWorld) -> None:
    for path in ("docs", "readme.md/inner"):
        with pytest.raises((Conflict, InvalidInput)):
            await places.write(path, b"x")
    assert await places.names("docs") == ["docs/a.txt", "docs/c.json", "docs/deep"]


async def test_uploads_take_no_other_files_place(places: PlaceWorld) -> None:
    bodies = [f"body {number}".encode() for number in range(12)]

    async def upload(body: bytes) -> str:
        result = await places.files.upload(places.place, "data.csv", pieces(body), NOW)
        return result.path

    paths = await asyncio.gather(*map(upload, bodies))
    assert sorted(paths) == sorted(["upload/data.csv", *(f"upload/data ({number}).csv" for number in range(1, 12))])
    assert {await places.content(path) for path in paths} == set(bodies)
    with pytest.raises(InvalidPath):
        await places.files.upload(places.place, "../data.csv", pieces(b"x"), NOW)


async def test_the_history_tells_what_was_done_and_for_which_message(places: PlaceWorld) -> None:
    context = OperationContext(message_id="message-7")
    await places.write("docs/a.txt", b"changed", context)
    await places.place.rename(TreePath("docs/a.txt"), TreePath("docs/z.txt"), NOW)
    await places.place.delete(TreePath("docs/z.txt"), NOW)
    page = await places.place.history(None, before=None, limit=3)
    assert [(one.action, one.path) for one in page.operations] == [
        (FileAction.DELETE, "docs/z.txt"),
        (FileAction.RENAME, "docs/z.txt"),
        (FileAction.WRITE, "docs/a.txt"),
    ]
    deleted, renamed, written = page.operations
    assert written.message_id == "message-7"
    assert (written.old_hash, written.new_hash) == (ContentHash.of(GIVEN["docs/a.txt"]), ContentHash.of(b"changed"))
    assert renamed.previous_path == "docs/a.txt"
    assert deleted.old_hash == ContentHash.of(b"changed")
    assert deleted.kind is Kind.DELETED
    assert {one.principal for one in page.operations} == {"agent:ann"}
    assert all(one.origin == "" for one in page.operations), "only who manages the project sees from where"


async def test_the_history_of_one_file_follows_its_renames(places: PlaceWorld) -> None:
    await places.write("docs/a.txt", b"changed")
    await places.write("docs/c.json", b"[]")
    await places.place.rename(TreePath("docs"), TreePath("texts"), NOW)
    await places.write("texts/a.txt", b"again")
    page = await places.place.history(TreePath("texts/a.txt"), before=None, limit=100)
    assert [one.new_hash for one in page.operations if one.action is FileAction.WRITE][:2] == [
        ContentHash.of(b"again"),
        ContentHash.of(b"changed"),
    ]
    assert all(str(one.path).endswith(("a.txt", "texts")) for one in page.operations)


async def test_the_history_goes_on_where_a_page_ended(places: PlaceWorld) -> None:
    for number in range(5):
        await places.write(f"{number}.txt", b"x")
    seen: list[str] = []
    before = None
    while True:
        page = await places.place.history(None, before=before, limit=2)
        seen += [str(one.path) for one in page.operations]
        if page.next_before is None or len(seen) >= 5:
            break
        before = page.next_before
    assert seen[:5] == ["4.txt", "3.txt", "2.txt", "1.txt", "0.txt"]


@pytest.mark.parametrize("form", list(ArchiveFormat))
async def test_a_folder_comes_as_an_archive(places: PlaceWorld, form: ArchiveFormat) -> None:
    await places.write("docs/new.txt", b"new")
    async with places.place.archive(TreePath("docs"), form) as stream:
        body = b"".join([piece async for piece in stream])
    if form is ArchiveFormat.ZIP:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
    else:
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            found = {
                member.name: file.read() for member in tar.getmembers() if (file := tar.extractfile(member)) is not None
            }
    assert found == {path: body for path, body in GIVEN.items() if path.startswith("docs/")} | {"docs/new.txt": b"new"}
    with pytest.raises(NotFound):
        async with places.place.archive(TreePath("nowhere"), form) as stream:
            await anext(stream)


async def test_a_sync_without_anything_new_registers_nothing(places: PlaceWorld) -> None:
    await places.write("docs/a.txt", b"changed")
    await places.place.rename(TreePath("docs"), TreePath("texts"), NOW)
    await places.place.delete(TreePath("readme.md"), NOW)
    await places.place.make_folder(TreePath("empty"), NOW)
    await places.files.upload(places.place, "a.txt", pieces(b"x"), NOW)
    assert (await places.place.sync(NOW)).registered == ()
    assert (await places.place.sync(NOW)).registered == ()
    assert (await places.files.info(places.place)).last_sync is not None
