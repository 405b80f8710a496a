"""What is reached below a folder's handle is below it."""

import os
from pathlib import Path

import pytest
from tests.support.accounts import folder_of_no_root

from contextbase.workspaces import syscalls
from contextbase.workspaces.folder import Folder, listing_of, remove_tree


@pytest.fixture(autouse=True, params=["openat2", "step by step"])
def way_to_open(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "step by step":
        monkeypatch.setattr(syscalls, "_has_openat2", lambda: False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "outside").write_bytes(b"outside")
    inner = tmp_path / "inner"
    (inner / "folder").mkdir(parents=True)
    (inner / "folder" / "file").write_bytes(b"inside")
    (inner / "up").symlink_to("..")
    (inner / "link").symlink_to("folder/file")
    os.mkfifo(inner / "pipe")
    return inner


@pytest.mark.parametrize(
    "path", ["../outside", "up/outside", "link", "pipe", "folder", "folder/../../outside", "/etc/passwd", "nothing", ""]
)
def test_only_plain_files_inside_can_be_opened(place: Path, path: str) -> None:
    with Folder(place) as folder, pytest.raises(OSError):  # noqa: PT011 - which one depends on the way out
        folder.open_file(path)


def test_files_lists_and_links_inside_can_be_read(place: Path) -> None:
    with Folder(place) as folder:
        file = folder.open_file("folder/file")
        assert os.read(file, 100) == b"inside"
        os.close(file)
        with folder.opened("") as descriptor:
            assert sorted(name for name, _ in listing_of(descriptor)) == ["folder", "link", "pipe", "up"]
        assert folder.link_target("link") == b"folder/file"
        for path in ("up", "..", "link"):
            with pytest.raises(OSError), folder.opened(path):  # noqa: PT011 - as above
                pass


def test_removing_follows_no_link_and_takes_every_name(place: Path) -> None:
    odd = os.fsencode(place) + b"/\xff\n"
    os.close(os.open(odd, os.O_CREAT))
    (place / ".contextbase-removed-0" / "x").mkdir(parents=True)
    (place / "shut").mkdir(mode=0)
    remove_tree(place)
    remove_tree(place)
    assert [path.name for path in place.parent.iterdir()] == ["outside"]


def test_without_root_folders_go_that_their_owner_has_shut() -> None:
    with folder_of_no_root() as place:
        top = place / "top"
        for mode in (0, 0o100, 0o400):
            below = top / str(mode) / "below"
            below.mkdir(parents=True)
            (below / "file").write_bytes(b"")
            below.chmod(mode)
            below.parent.chmod(mode)
        top.chmod(0)
        remove_tree(top)
        assert list(place.iterdir()) == []
