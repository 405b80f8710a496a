"""What the local folder promises beyond the contract: plain read-only files, no symlinks, errors that help."""

import errno
import os
import stat
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.files import below, folders_below

from contextbase import durable
from contextbase.errors import BlobMissing, MachineProblem
from contextbase.ids import ContentHash
from contextbase.storage.blobs import local
from contextbase.storage.blobs.integrity import PIECE_SIZE
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.spool import SpoolFolder

CONTENT = b"kept in a plain file"
NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "blobs"


@pytest.fixture
def store(root: Path) -> LocalBlobStore:
    return LocalBlobStore(root)


async def stream(content: bytes = CONTENT) -> AsyncIterator[bytes]:
    yield content


async def test_a_blob_is_a_read_only_plain_file_with_the_content_and_nothing_else(store: LocalBlobStore) -> None:
    stored = await store.put(stream())

    path = store.path(stored.hash)

    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert path.stat().st_nlink == 1
    assert path.parts[-3:] == ("objects", str(stored.hash)[:2], str(stored.hash)[2:])


async def test_only_the_owner_may_look_into_the_folders(store: LocalBlobStore, root: Path) -> None:
    await store.put(stream())

    folders = [root, *folders_below(root)]

    assert len(folders) == 4
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_data_is_on_the_disk_before_its_name_and_its_name_before_the_put_returns(
    store: LocalBlobStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    link = os.link

    def recorded_flush(descriptor: int) -> None:
        status = os.fstat(descriptor)
        names = [path.name for path in (root, *below(root)) if path.exists() and path.stat().st_ino == status.st_ino]
        steps.extend("flush data" if name.endswith(".part") else f"flush {name}" for name in names)

    def recorded_link(source: Path, name: str, *, dst_dir_fd: int, follow_symlinks: bool) -> None:
        steps.append("name")
        link(source, name, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(local, "flush", recorded_flush)
    monkeypatch.setattr(durable, "flush", recorded_flush)
    monkeypatch.setattr(os, "link", recorded_link)
    folder = str(ContentHash.of(CONTENT))[:2]

    await store.put(stream())
    first, steps[:] = tuple(steps), []
    await store.put(stream())

    assert first[-5:] == ("flush blobs", "flush objects", "flush data", "name", f"flush {folder}")
    assert steps == [f"flush {folder}"]  # the other writer may not have come this far


async def test_a_symlink_in_a_blobs_place_is_not_followed(store: LocalBlobStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    path = store.path(ContentHash.of(CONTENT))
    path.parent.mkdir(parents=True)
    path.symlink_to(secret)

    assert await store.size(ContentHash.of(CONTENT)) is None
    with pytest.raises(BlobMissing):
        await store.verify(ContentHash.of(CONTENT))
    assert [blob async for blob in store.list()] == []

    await store.put(stream())

    assert not path.is_symlink()
    assert path.read_bytes() == CONTENT
    assert not secret.samefile(path)


async def test_a_symlink_in_a_folders_place_is_not_followed(store: LocalBlobStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "objects").mkdir(parents=True)
    store.path(ContentHash.of(CONTENT)).parent.symlink_to(outside)

    with pytest.raises(MachineProblem):
        await store.put(stream())

    assert list(outside.iterdir()) == []
    assert not await store.exists(ContentHash.of(CONTENT))
    assert [blob async for blob in store.list()] == []


async def test_a_pipe_in_a_blobs_place_does_not_hang_a_reader(store: LocalBlobStore) -> None:
    path = store.path(ContentHash.of(CONTENT))
    path.parent.mkdir(parents=True)
    os.mkfifo(path)

    with pytest.raises(BlobMissing):
        await store.verify(ContentHash.of(CONTENT))


async def test_files_of_others_are_not_listed(store: LocalBlobStore, root: Path) -> None:
    stored = await store.put(stream())
    folder = store.path(stored.hash).parent
    (folder / "README").write_text("not a blob")
    (folder / ("0" * 62)).mkdir()
    (root / "objects" / "lost+found").mkdir()
    (root / "objects" / ".DS_Store").write_text("not a folder")

    assert [blob async for blob in store.list()] == [stored]


async def test_a_listing_goes_past_one_batch(store: LocalBlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_LIST_BATCH", 3)
    put = [await store.put(stream(bytes([number]))) for number in range(10)]

    assert {blob.hash async for blob in store.list()} == {blob.hash for blob in put}


@pytest.mark.parametrize("length", [10, 2 * PIECE_SIZE])
async def test_a_full_disk_is_said_to_be_full_and_leaves_nothing(
    store: LocalBlobStore, root: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    def no_space(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "write", no_space)
        with pytest.raises(MachineProblem, match=r"is full\. Free some space") as caught:
            await store.put(stream(bytes(length)))

    assert str(root) in caught.value.message
    assert below(root / "tmp") == []
    assert [blob async for blob in store.list()] == []


@pytest.fixture
def unwritable_root(root: Path) -> Iterator[Path]:
    root.mkdir(parents=True)
    root.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:  # root may write anywhere: be someone else for a moment
        os.seteuid(NOBODY)
    yield root
    if was_root:
        os.seteuid(0)
    root.chmod(0o700)


async def test_a_folder_that_is_not_writable_is_named(unwritable_root: Path) -> None:
    with pytest.raises(MachineProblem, match="permission") as caught:
        await LocalBlobStore(unwritable_root).put(stream())

    assert str(unwritable_root) in caught.value.message


async def test_only_stale_temporaries_are_removed(store: LocalBlobStore, root: Path) -> None:
    stored = await store.put(stream())
    for name in ("old.part", "new.part", "of-another-kind"):
        (root / "tmp" / name).write_text("left by a killed put")
    two_days_ago = (root / "tmp" / "old.part").stat().st_mtime - timedelta(days=2).total_seconds()
    os.utime(root / "tmp" / "old.part", (two_days_ago, two_days_ago))
    os.utime(root / "tmp" / "of-another-kind", (two_days_ago, two_days_ago))
    os.utime(store.path(stored.hash), (two_days_ago, two_days_ago))

    assert await SpoolFolder(root / "tmp").remove_stale() == 1

    assert sorted(path.name for path in (root / "tmp").iterdir()) == ["new.part", "of-another-kind"]
    assert await store.verify(stored.hash) == len(CONTENT)
