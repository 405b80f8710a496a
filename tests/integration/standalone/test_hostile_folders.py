"""Names and links that mean harm, in the sandbox or in the base folder: nothing outside is read, written or removed."""

import os
import socket
import unicodedata
from pathlib import Path

import pytest
from tests.support.sandboxes import TEXT, Site, tree_of

from contextbase.errors import Conflict, Damaged, InvalidInput, MachineProblem, NotFound
from contextbase.standalone import WorkerSandbox, tree
from contextbase.workspaces.folder import listing_of


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that is none of our business."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.txt").write_text("outside\n")
    return folder


def test_a_link_out_of_the_sandbox_comes_back_as_a_link(site: Site, outside: Path) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").unlink()
    worker.path_of("a.txt").symlink_to(outside / "a.txt")
    assert worker.sync_back().is_complete
    assert (site.base / "a.txt").is_symlink()
    assert all(b"outside\n" not in path.read_bytes() for path in (site.root / "one/given").iterdir())


def test_a_folder_replaced_by_a_link_is_not_entered(site: Site, outside: Path) -> None:
    site.put("src/a.txt")
    worker = site.worker("one", "src")
    worker.path_of("src/a.txt").unlink()
    worker.path_of("src").rmdir()
    worker.path_of("src").symlink_to(outside)
    worker.sync_back()
    assert tree_of(site.base) == {"src": ("link", os.fsencode(outside), 0)}
    with pytest.raises(NotFound):
        worker.copy("src/a.txt")
    assert tree_of(outside)["a.txt"][1] == b"outside\n"


def test_a_copy_does_not_go_through_a_link_in_the_sandbox(site: Site, outside: Path) -> None:
    site.put("src/b.txt")
    worker = site.worker("one")
    worker.path_of("src").symlink_to(outside)
    with pytest.raises(MachineProblem):
        worker.copy("src/b.txt")
    assert set(tree_of(outside)) == {"a.txt"}


def test_a_write_does_not_go_through_a_link_in_the_base_folder(site: Site, outside: Path) -> None:
    site.put("src/a.txt")
    site.put("src/b.txt")
    worker = site.worker("one", "src")
    for path in (site.base / "src").iterdir():
        path.unlink()
    (site.base / "src").rmdir()
    (site.base / "src").symlink_to(outside)
    worker.path_of("src/a.txt").write_text("mine\n")
    worker.path_of("src/b.txt").unlink()
    worker.path_of("src/new.txt").write_text("mine, too\n")
    result = worker.sync_back()
    assert {file.path for file in result.conflicts} == {"src/a.txt", "src/new.txt"}
    assert tree_of(outside) == {"a.txt": ("file", b"outside\n", (outside / "a.txt").stat().st_mode & 0o777)}
    assert sorted((site.base / file.kept_at).read_text() for file in result.conflicts) == ["mine\n", "mine, too\n"]


def test_a_link_in_the_base_folder_is_not_followed_to_be_copied(site: Site, outside: Path) -> None:
    (site.base / "link").symlink_to(outside)
    worker = site.worker("one")
    with pytest.raises(NotFound):
        worker.copy("link/a.txt")
    worker.copy("**")
    assert tree_of(worker.path) == {"link": ("link", os.fsencode(outside), 0)}


@pytest.mark.parametrize("place", [".contextbase", ".contextbase/incoming", ".contextbase/conflicts"])
def test_our_own_folder_as_a_link_is_refused(site: Site, outside: Path, place: str) -> None:
    (site.base / place).parent.mkdir(exist_ok=True)
    (site.base / place).symlink_to(outside)
    with pytest.raises(MachineProblem):
        site.worker("one")
    assert set(tree_of(outside)) == {"a.txt"}


def test_what_is_neither_file_nor_link_is_named_and_the_rest_comes_back(site: Site) -> None:
    worker = site.worker("one")
    os.mkfifo(worker.path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(worker.path)  # the path of a socket is short
        try:
            listener.bind("socket")
        finally:
            os.chdir(before)
    worker.path_of("good.txt").write_text("good\n")
    result = worker.sync_back()
    assert {file.path for file in result.failed} == {"pipe", "socket"}
    assert [file.path for file in result.success] == ["good.txt"]
    with pytest.raises(Conflict, match="pipe"):
        worker.cleanup()


def test_a_pipe_that_took_the_place_of_a_file_is_no_deletion(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").unlink()
    os.mkfifo(worker.path / "a.txt")
    assert [file.path for file in worker.sync_back().failed] == ["a.txt"]
    assert (site.base / "a.txt").read_text() == TEXT


def test_names_that_no_tree_can_have_are_named_and_stay(site: Site) -> None:
    worker = site.worker("one")
    names = ["new\nline", "back\\slash", unicodedata.normalize("NFD", "é"), "\udcff", "bell\a"]
    for name in names:
        (worker.path / name).write_text("x\n")
    worker.path_of("good.txt").write_text("good\n")
    result = worker.sync_back()
    assert {file.path for file in result.failed} == set(names)
    assert all("not valid" in file.reason for file in result.failed)
    assert set(tree_of(site.base)) == {"good.txt"}
    assert all((worker.path / name).exists() for name in names)


def test_folders_without_end_are_named(site: Site) -> None:
    worker = site.worker("one")
    before = Path.cwd()
    os.chdir(worker.path)
    try:
        for _ in range(3000):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(before)
    assert len(worker.sync_back().failed) == 1
    worker.cleanup(discard=True)
    assert not (site.root / "one").exists()


def test_a_folder_that_cannot_be_read_is_no_deletion_of_what_is_in_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("src/deep/a.txt")
    site.put("b.txt")
    worker = site.worker("one", "**")
    worker.path_of("b.txt").unlink()

    def refuse(descriptor: int) -> list[tuple[str, os.stat_result]]:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "src":
            raise PermissionError(13, "Permission denied")
        return listing_of(descriptor)

    monkeypatch.setattr(tree, "listing_of", refuse)
    result = worker.sync_back()
    assert [(file.path, file.reason) for file in result.failed] == [("src", "It cannot be read: Permission denied.")]
    assert [file.path for file in result.success] == ["b.txt"]
    assert set(tree_of(site.base)) == {"src", "src/deep", "src/deep/a.txt"}


def test_a_sandbox_whose_folder_is_gone_deletes_nothing(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path.rename(site.root / "elsewhere")
    with pytest.raises(Damaged, match="nothing is synced"):
        worker.sync_back()
    worker.path.symlink_to(site.root / "elsewhere")
    with pytest.raises(Damaged):
        worker.sync_back()
    assert (site.base / "a.txt").read_text() == TEXT


@pytest.mark.parametrize("path", ["../outside/a.txt", "/etc/passwd", ".contextbase/leases/lock"])
def test_metadata_that_names_what_is_outside_is_refused(site: Site, path: str) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.close()
    metadata = site.root / "one/.sandbox-metadata.json"
    metadata.write_text(metadata.read_text().replace("a.txt", path))
    with pytest.raises(Damaged, match="cannot be read"):
        site.worker("one")


@pytest.mark.parametrize("path", ["..", "../a.txt", "/etc/passwd", "a/../../b", ".contextbase/leases/lock", ""])
def test_nothing_outside_the_base_folder_is_copied(site: Site, path: str) -> None:
    worker = site.worker("one")
    with pytest.raises((InvalidInput, NotFound)):
        worker.copy(path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", ".removed", "a" * 65, "a\nb", "-rf"])
def test_a_workers_name_is_a_plain_one(site: Site, name: str) -> None:
    with pytest.raises(InvalidInput):
        site.worker(name)


def test_privileges_in_a_files_mode_do_not_come_back(site: Site) -> None:
    worker = site.worker("one")
    worker.path_of("tool").write_text("#!/bin/sh\n")
    worker.path_of("tool").chmod(0o6755)
    worker.sync_back()
    assert (site.base / "tool").stat().st_mode & 0o7777 == 0o755


def test_a_base_folder_that_is_a_link_is_the_folder_it_leads_to(site: Site) -> None:
    site.put("a.txt")
    (site.folder / "link").symlink_to(site.base)
    with WorkerSandbox("one", "task", site.folder / "link", root=site.root) as worker:
        worker.copy("a.txt")
        worker.path_of("a.txt").write_text("mine\n")
        assert worker.sync_back().is_complete
    assert (site.base / "a.txt").read_text() == "mine\n"
