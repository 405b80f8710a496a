"""What goes wrong is said plainly, leaves nothing half done, and a damaged backup is never taken for a whole one."""

import errno
import os
import tarfile
from pathlib import Path

import pytest
from tests.support.backups import LARGE, Place, System, filled, restored
from tests.support.gate_world import write

from contextbase.backup import archive, verify_backup
from contextbase.bootstrap import open_database
from contextbase.errors import Conflict, ContextbaseError, Damaged, MachineProblem, NotFound
from contextbase.ids import ContentHash
from contextbase.storage.blobs.local import LocalBlobStore


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x01
    path.chmod(0o600)
    path.write_bytes(content)


def place_in(target: Path, name: str, into: int = -1) -> tuple[Path, int]:
    """The file and offset of a byte in the middle (or at `into`) of the first file whose name has this in it."""
    if target.is_dir():
        [path, *_] = sorted(path for path in target.rglob("*") if path.is_file() and name in str(path))
        return path, path.stat().st_size // 2 if into < 0 else into
    with tarfile.open(target) as tar:
        [member, *_] = [member for member in tar.getmembers() if name in member.name]
        return target, member.offset_data + (member.size // 2 if into < 0 else into)


def size_of(path: Path) -> int:
    return path.stat().st_size


def files_below(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


async def assert_refused(elsewhere: Place, target: Path, match: str = "") -> None:
    """The restore says so, and the database stays empty."""
    with pytest.raises(ContextbaseError, match=match):
        await restored(elsewhere.settings, target)
    async with open_database(elsewhere.settings, own=False) as database, database.connection() as connection:
        assert await connection.fetchval("SELECT to_regclass('projects')") is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tables/versions.0000", "'versions'"),
        ("tables/blob_contents.0000", "'blob_contents'"),
        ("tables/audit.0000", "'audit'"),
        ("blob-list.0000", "list of blobs"),
        ("blobs/objects", "blob"),
        ("audit.key", "audit key"),
    ],
)
async def test_a_flipped_byte_is_found_by_verify_and_by_restore(
    system: System, target: Path, elsewhere: Place, name: str, said: str
) -> None:
    await filled(system)
    await system.back_up(target)
    assert (await verify_backup(target)).problems == ()
    flip(*place_in(target, name))
    problems = (await verify_backup(target)).problems
    assert problems
    assert said in problems[0]
    await assert_refused(elsewhere, target, said)


@pytest.mark.parametrize("target", ["backups"], indirect=True)
async def test_a_flipped_byte_anywhere_in_a_table_is_told_as_damage(
    system: System, target: Path, elsewhere: Place
) -> None:
    """Whether the server stumbles over it first, or the sum at the end."""
    await filled(system)
    await system.back_up(target)
    path, _ = place_in(target, "tables/audit.0000")
    for offset in range(0, size_of(path), size_of(path) // 15):
        flip(path, offset)
        await assert_refused(elsewhere, target, "'audit'")
        flip(path, offset)


async def test_a_flipped_byte_in_the_manifest_is_found_wherever_it_is(system: System, target: Path) -> None:
    await filled(system)
    await system.back_up(target)
    path, start = place_in(target, "manifest.json", 0)
    size = min(4000, path.stat().st_size - start)
    for offset in range(start, start + size, max(1, size // 25)):
        original = path.read_bytes()
        flip(path, offset)
        try:
            problems = (await verify_backup(target)).problems
        except Damaged:
            problems = ("said",)
        # An altered space between two values alters nothing.
        assert problems or chr(original[offset]) in " \n"
        path.write_bytes(original)
    assert (await verify_backup(target)).problems == ()


@pytest.mark.parametrize("target", ["backup.tar"], indirect=True)
async def test_a_tar_that_was_cut_short_anywhere_is_no_backup(system: System, target: Path, elsewhere: Place) -> None:
    await filled(system)
    await system.back_up(target)
    size = size_of(target)
    for cut in [*range(size - 1025, 1000, -size // 40), 513, 512, 511, 1, 0]:
        os.truncate(target, cut)
        with pytest.raises((Damaged, NotFound), match="cut short"):
            await verify_backup(target)
    await assert_refused(elsewhere, target, "cut short")


async def test_a_lost_file_is_named(system: System, elsewhere: Place, tmp_path: Path) -> None:
    await filled(system)
    target = tmp_path / "backups"
    manifest = await system.back_up(target)
    place_in(target, "blobs/objects")[0].unlink()
    [problem] = (await verify_backup(target)).problems
    assert "missing" in problem
    await assert_refused(elsewhere, target, "missing")
    place_in(target, "tables/commits.0000")[0].unlink()
    assert any("commits.0000" in problem for problem in (await verify_backup(target)).problems)
    place_in(target, "manifest.json")[0].unlink()
    with pytest.raises(NotFound, match="no finished backup"):
        await verify_backup(target)
    with pytest.raises(NotFound):
        await verify_backup(target, snapshot=manifest.snapshot)


async def test_the_next_backup_heals_a_folder_whose_damaged_blob_was_removed(system: System, tmp_path: Path) -> None:
    await filled(system)
    await system.back_up(tmp_path / "backups")
    damaged, offset = place_in(tmp_path / "backups", "blobs/objects")
    flip(damaged, offset)
    damaged.unlink()
    again = await system.services.backups.create(tmp_path / "backups")
    assert again.new_blobs == 1
    assert (await verify_backup(tmp_path / "backups")).problems == ()


async def test_a_blob_the_backup_should_hold_but_does_not_name_is_found(
    system: System, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the list had been made from another moment than the tables."""
    await filled(system)
    real = archive.Parts.add

    async def add(self: archive.Parts, piece: bytes) -> None:
        if not (self._name == archive.BLOB_LIST and piece.startswith(str(ContentHash.of(LARGE)).encode())):
            await real(self, piece)

    monkeypatch.setattr(archive.Parts, "add", add)
    await system.back_up(target)
    [problem] = (await verify_backup(target)).problems
    assert str(ContentHash.of(LARGE)) in problem


async def test_blobs_that_are_damaged_already_are_left_out_and_named(
    system: System, target: Path, elsewhere: Place
) -> None:
    project = await filled(system)
    other = LARGE + b"other"
    await system.commit(project.id, write("other.bin", other, 0))
    store = system.services.large_blobs
    assert isinstance(store, LocalBlobStore)
    flip(store.path(ContentHash.of(LARGE)), 100)
    store.path(ContentHash.of(other)).unlink()
    manifest = await system.back_up(target)
    lost = sorted(str(ContentHash.of(content)) for content in (LARGE, other))
    assert list(manifest.damaged) == lost
    problems = (await verify_backup(target)).problems
    assert len(problems) == 2
    assert all("already when the backup was made" in problem for problem in problems)
    await restored(elsewhere.settings, target)  # all else comes back; fsck names the two


async def test_a_blob_whose_bytes_were_purged_is_not_missed(system: System, target: Path) -> None:
    await filled(system)
    name = ContentHash.of(LARGE)
    async with system.services.database.transaction() as connection:
        await connection.execute("UPDATE blobs SET purged_at = now() WHERE hash = $1", name)
    await system.services.large_blobs.delete(name)
    manifest = await system.back_up(target)
    assert (manifest.damaged, manifest.blobs.count) == ((), 1)
    assert (await verify_backup(target)).problems == ()


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "full"), (errno.EACCES, "not open"), (errno.EIO, "failed")]
)
async def test_a_disk_that_refuses_is_said_and_nothing_counts_as_a_backup(
    system: System, target: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    await filled(system)
    real = os.write
    written = 0

    def write_some(file: int, content: bytes) -> int:
        nonlocal written
        written += len(content)
        if written > 3000:
            raise OSError(number, os.strerror(number))
        return real(file, content)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_some)
        with pytest.raises(MachineProblem, match=said):
            await system.back_up(target)
    assert files_below(target.parent, "*.part") == files_below(target, "snapshots/*") == []
    assert target.suffix != ".tar" or files_below(target.parent, target.name) == []
    await system.back_up(target)
    assert (await verify_backup(target)).problems == ()


async def test_a_folder_with_other_things_is_left_alone(system: System, tmp_path: Path) -> None:
    target = tmp_path / "photos"
    target.mkdir()
    (target / "cat.jpg").write_bytes(b"meow")
    with pytest.raises(Conflict, match="other things"):
        await system.back_up(target)
    assert [path.name for path in target.iterdir()] == ["cat.jpg"]


async def test_a_tar_is_never_written_over(system: System, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    target.write_bytes(b"precious")
    with pytest.raises(Conflict, match="there already"):
        await system.back_up(target)
    assert target.read_bytes() == b"precious"


async def test_a_place_that_cannot_be_is_said(system: System, elsewhere: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for target in (tmp_path / "file" / "backups", tmp_path / "file" / "backup.tar"):
        with pytest.raises(MachineProblem):
            await system.back_up(target)
    with pytest.raises(NotFound, match="nothing at"):
        await restored(elsewhere.settings, tmp_path / "nowhere")
    (tmp_path / "text.tar").write_text("not a tar" * 1000)
    with pytest.raises(Damaged, match="not a whole tar"):
        await verify_backup(tmp_path / "text.tar")
    with pytest.raises(NotFound, match="no finished backup"):
        await verify_backup(tmp_path)
