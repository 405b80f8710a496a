"""Snapshots as archives: what is in them, in which order of magnitude of memory, and what is not."""

import io
import os
import stat
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.history_world import HistoryWorld

from contextbase.db.database import Database
from contextbase.errors import NotFound
from contextbase.gate.model import ContentKind
from contextbase.history import archives
from contextbase.history.archive_writers import ArchiveFormat

LARGE = os.urandom(700_000)
NAME = "d/" + "ä" * 100 + "/" + "long" * 30 + ".txt"
AT = datetime(2026, 1, 31, 12, 0, 4, tzinfo=UTC)


async def a_world(database: Database, folder: Path) -> HistoryWorld:
    world = await HistoryWorld.start(database, folder)
    await world.gate.commit(
        write("a.txt", b"1\n", 0), write("run", b"#!\n", 0, executable=True), write("large", LARGE, 0),
        write("empty", b"", 0), mkdir("folder", 0), write("link", b"../out", 0, kind=ContentKind.SYMLINK),
        write(NAME, b"deep\n", 0),
    )  # fmt: skip
    await world.gate.commit(write("a.txt", b"2\n", 1), rename("run", "moved", 1))
    async with database.transaction() as connection:
        await connection.execute("UPDATE commits SET committed_at = $1", AT)
    return world


FILES = {"a.txt": b"1\n", "run": b"#!\n", "large": LARGE, "empty": b"", NAME: b"deep\n"}


@pytest.mark.parametrize("form", ["tar", "tar.gz"])
async def test_a_tar_file_has_contents_modes_links_folders_and_times(
    database: Database, tmp_path: Path, form: str
) -> None:
    world = await a_world(database, tmp_path)
    with tarfile.open(
        fileobj=io.BytesIO(await world.archive(form, ref="1")), mode="r:gz" if "gz" in form else "r:"
    ) as it:
        entries = {entry.name: entry for entry in it}
        assert {name: it.extractfile(name).read() for name, entry in entries.items() if entry.isfile()} == FILES  # type: ignore[union-attr]  # a file
    assert entries["folder"].isdir()
    assert (entries["link"].issym(), entries["link"].linkname) == (True, "../out")
    assert (entries["run"].mode, entries["a.txt"].mode) == (0o755, 0o644)
    assert {entry.mtime for entry in entries.values()} == {AT.timestamp()}


async def test_a_zip_file_has_the_same(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    with zipfile.ZipFile(io.BytesIO(await world.archive("zip", ref="1"))) as it:
        assert it.testzip() is None
        entries = {entry.filename: entry for entry in it.infolist()}
        kinds = {name: stat.S_IFMT(entry.external_attr >> 16) for name, entry in entries.items()}
        contents = {name: it.read(name) for name in entries}
    assert {name: contents[name] for name, kind in kinds.items() if kind == stat.S_IFREG} == FILES
    assert (kinds["folder/"], kinds["link"], contents["link"]) == (stat.S_IFDIR, stat.S_IFLNK, b"../out")
    assert (entries["run"].external_attr >> 16 & 0o777, entries["a.txt"].external_attr >> 16 & 0o777) == (0o755, 0o644)
    assert entries["a.txt"].date_time == (2026, 1, 31, 12, 0, 4)


def names(content: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return archive.getnames()


async def test_a_part_of_any_snapshot_can_be_had(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_PAGE", 2)
    world = await a_world(database, tmp_path)
    assert names(await world.archive()) == sorted(["a.txt", "moved", "large", "empty", "folder", "link", NAME])
    assert names(await world.archive(path="d")) == [NAME]
    assert names(await world.archive(path="a.txt", ref="head~1")) == ["a.txt"]
    assert names(await world.archive(ref="0")) == []
    with pytest.raises(NotFound):
        await world.archive(path="nowhere")


async def test_what_a_caller_may_not_see_is_in_no_archive(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.gate.rule("moved", "hidden", ann)
    await world.gate.rule("d/**", "hidden", ann)
    assert names(await world.archive(ref="1", who=ann)) == ["a.txt", "empty", "folder", "large", "link"]
    for path in ("d", "run", "nowhere"):
        with pytest.raises(NotFound, match=f"nothing at {path} "):
            await world.archive(ref="1", path=path, who=ann)


async def test_what_was_purged_is_left_out(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    async with database.transaction() as connection:
        name = await connection.fetchval("SELECT content_hash FROM versions WHERE path = 'large'")
        await world.gate.catalog.bury(connection, [name], [world.gate.project.id])
    assert "large" not in names(await world.archive())


async def test_an_archive_is_made_while_it_is_read(database: Database, tmp_path: Path) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    content = os.urandom(3 << 20)
    await world.gate.commit(*(write(f"f{number}", content + b"%d" % number, 0) for number in range(3)))
    for form in ArchiveFormat:
        archive = await world.archives.open(world.gate.owner, world.gate.project.id, path=None, form=form)
        sizes = [len(piece) async for piece in archive.pieces]
        assert max(sizes) < 3 << 20
        assert sum(sizes) > 9 << 20
    # Who stops early leaves nothing open behind.
    archive = await world.archives.open(world.gate.owner, world.gate.project.id, path=None, form=ArchiveFormat.TAR)
    await anext(archive.pieces)
    await archive.pieces.aclose()
    await world.gate.commit(delete("f1", 1))
