"""What cannot be put back into a session's folder is told, and never left out."""

import errno
import os
from pathlib import Path

import pytest

from contextbase.errors import MachineProblem
from contextbase.ids import ContentHash
from contextbase.sessions.restored_files import put_entries
from contextbase.sessions.snapshot_model import SessionFile, StoredPiece
from contextbase.storage.model import Kind
from contextbase.workspaces import editor as editor_module
from contextbase.workspaces.model import Owner


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: int, content: bytes) -> None:  # noqa: ARG001 - in the place of a write
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(editor_module, "_write_all", full)
    name = ContentHash.of(b"new")
    file = SessionFile(name=b"a", kind=Kind.FILE, pieces=(StoredPiece(hash=name, size=3),))
    with pytest.raises(MachineProblem, match="no room"):
        put_entries(tmp_path, Owner.of_this_process(), [file], {name: b"new"})


def test_what_had_to_be_put_aside_is_told_once_though_it_is_put_back_again(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a file of others, where the session had a folder\n")
    name = ContentHash.of(b"mine")
    file = SessionFile(name=b"notes/a.md", kind=Kind.FILE, pieces=(StoredPiece(hash=name, size=4),))
    for _ in range(2):  # the first one was cut off later on
        put_entries(tmp_path, Owner.of_this_process(), [file], {name: b"mine"})
    own = tmp_path / ".contextbase"
    assert (own / "notices.md").read_text().count("notes/a.md: others have") == 1
    assert [path.read_text() for path in (own / "conflicts").rglob("*") if path.is_file()] == ["mine"]
