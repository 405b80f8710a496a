"""Many new files in a folder that an agent may be at work in."""

import errno
import os
from pathlib import Path

import pytest

from contextbase.catalog.layers import LayerStep, StepAction
from contextbase.errors import MachineProblem
from contextbase.ids import ContentHash, TreePath
from contextbase.sessions.layer_files import put_layer
from contextbase.storage.model import Kind
from contextbase.workspaces import editor as editor_module
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.new_files import add_files
from contextbase.workspaces.refresh.edits import clear_leftovers

FILE = FolderContent(kind=Kind.FILE)


def add(folder: Path, files: dict[str, bytes]) -> None:
    entries = [(TreePath.stored(path), FILE, content) for path, content in files.items()]
    with FolderEditor(folder, owner=Owner.of_this_process()) as editor:
        add_files(editor, entries)


def found_in(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_what_stands_stays_and_the_rest_comes_in_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1").write_bytes(b"own")
    (tmp_path / "taken").write_bytes(b"a file where a folder is to be")
    files = {"a/1": b"new", "a/2": b"new", "b/c/3": b"new", "taken/4": b"new", "top": b"new"}
    add(tmp_path, files)
    expected = dict.fromkeys(("a/2", "b/c/3", "top"), b"new")
    own = {"a/1": b"own", "taken": b"a file where a folder is to be"}
    assert found_in(tmp_path) == expected | own  # and nothing is left in .contextbase/tmp


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "folder"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "a").symlink_to(elsewhere)
    add(folder, {"a/1": b"new", "a/b/2": b"new"})
    assert found_in(elsewhere) == {}
    assert (folder / "a").is_symlink()


def test_a_file_that_cannot_be_written_keeps_no_other_away(tmp_path: Path) -> None:
    add(tmp_path, {"a/1": b"new", f"a/{'x' * 300}": b"new", "a/2": b"new"})
    assert found_in(tmp_path) == {"a/1": b"new", "a/2": b"new"}


def test_a_full_disk_is_told_where_all_of_the_files_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: int, content: bytes) -> None:  # noqa: ARG001 - in the place of a write
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(editor_module, "_write_all", full)
    layer = {TreePath("a/1"): FolderContent(kind=Kind.FILE, hash=ContentHash.of(b"new"))}
    steps = [LayerStep(path=TreePath("a/1"), action=StepAction.WRITE)]
    for standing in ({}, {TreePath("a/1"): FolderContent(kind=Kind.FILE, hash=ContentHash.of(b"old"))}):
        if standing:
            (tmp_path / "a").mkdir()
            (tmp_path / "a/1").write_bytes(b"old")
        with pytest.raises(MachineProblem):
            put_layer(
                tmp_path,
                Owner.of_this_process(),
                steps,
                standing=standing,
                layer=layer,
                contents={ContentHash.of(b"new"): b"new"},
            )
    assert found_in(tmp_path) == {"a/1": b"old"}


def test_a_folder_is_never_there_with_a_part_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed in the middle, and goes on after that, finds all of it or nothing."""
    seen = []

    def killed(folder: int, content: bytes) -> None:  # noqa: ARG001 - in the place of a write
        seen.append(sorted(path.name for path in tmp_path.iterdir() if path.name != ".contextbase"))
        if len(seen) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(editor_module, "_write_all", killed)
    with pytest.raises(KeyboardInterrupt):
        add(tmp_path, {"a/1": b"new", "b/1": b"new", "b/2": b"new"})
    assert seen == [[], ["a"], ["a"]]
    assert not (tmp_path / "b").exists()


def test_a_refresh_that_begins_meanwhile_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out would look as if the session had removed it."""
    write = editor_module._write_all

    def written(file: int, content: bytes) -> None:
        write(file, content)
        with FolderEditor(tmp_path, owner=Owner.of_this_process()) as editor:
            clear_leftovers(editor)

    monkeypatch.setattr(editor_module, "_write_all", written)
    add(tmp_path, {"a/1": b"new", "a/2": b"new", "top": b"new"})
    assert found_in(tmp_path) == dict.fromkeys(("a/1", "a/2", "top"), b"new")


def test_what_a_killed_process_was_about_to_add_goes_after_a_while(tmp_path: Path) -> None:
    left = [tmp_path / ".contextbase/tmp" / name for name in ("new-1", "new-2")]
    for place in left:
        place.mkdir(parents=True)
        (place / "file").write_bytes(b"half")
        (place / "folder").mkdir()
    os.utime(left[0], (1, 1))
    with FolderEditor(tmp_path, owner=Owner.of_this_process()) as editor:
        clear_leftovers(editor)
    assert [place.exists() for place in left] == [False, True]
