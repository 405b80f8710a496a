"""The writing and removing that puts a session's stored files back into its folder. All of it blocks: for threads."""

import errno
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from contextbase.errors import Conflict
from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.sessions.snapshot_model import SessionFile
from contextbase.storage.model import Kind
from contextbase.workspaces.editor import CONFLICTS, NOTICES, FolderEditor
from contextbase.workspaces.in_the_way import room_required
from contextbase.workspaces.model import FolderContent, Owner

__all__ = ["append_to", "put_entries", "remove_entries", "sync_folder"]

_TAKEN: Final = {errno.EEXIST, errno.ENOTDIR, errno.ELOOP}
_CONFLICTS: Final = f"{RESERVED_FOLDER}/{CONFLICTS}"
_ASIDE: Final = "from-session"


def remove_entries(work: Path, owner: Owner, gone: Collection[TreePath], folders: Collection[TreePath]) -> None:
    """Entries, and those of the folders that are empty then."""
    with FolderEditor(work, owner=owner) as editor:
        for path in sorted(gone, reverse=True):
            try:
                with suppress(FileNotFoundError), editor.parent_of(path, make=False) as parent:
                    _remove(parent, path.name)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
        for folder in sorted(folders, reverse=True):
            with suppress(OSError):  # something is in it
                editor.remove_folder(folder)


@room_required()
def put_entries(
    work: Path, owner: Owner, files: Iterable[SessionFile], contents: Mapping[ContentHash, bytes]
) -> list[TreePath]:
    """Entries in the folder, in the place of whatever has their names; returns where they are. A folder with something
    in it stays, as does a file of others where a folder was, and what the session had there is put aside."""
    places = []
    with FolderEditor(work, owner=owner) as editor:
        for file in files:
            place = TreePath.stored(os.fsdecode(file.name))
            content = b"".join([contents[piece.hash] for piece in file.pieces])
            try:
                _put_entry(editor, place, file, content)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
                if file.kind is not Kind.DIRECTORY:
                    place = _put_aside(editor, place, file, content)
            places.append(place)
    return places


def _put_aside(editor: FolderEditor, path: TreePath, file: SessionFile, content: bytes) -> TreePath:
    """Returns where it is. The agent may have put anything where it would be looked for first."""
    usual = TreePath.stored(f"{_CONFLICTS}/{path}/{_ASIDE}")
    for place in (usual, *(TreePath.stored(f"{_CONFLICTS}/{_ASIDE}-{number}/{path}") for number in range(2, 10))):
        try:
            is_told = editor.has_entry(place)  # by a restore that was cut off
            _put_entry(editor, place, file, content)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            continue
        if not is_told:
            note = f"- {path}: others have something else there; yours is in {place.parent}/.\n"
            editor.add_note(NOTICES, note.encode(errors="replace").decode())
        return place
    raise Conflict(
        f"The session's {path} cannot be put aside: other files are in the way. Remove them from {_CONFLICTS}/."
    )


def _put_entry(editor: FolderEditor, path: TreePath, file: SessionFile, content: bytes) -> None:
    if file.kind is Kind.DIRECTORY:
        editor.make_folder(path)
        return
    with editor.parent_of(path, make=True) as parent:
        with suppress(FileNotFoundError):
            _remove(parent, path.name)
        kind = FolderContent(kind=file.kind, executable=file.executable)
        editor.write_entry(parent, path.name, kind, content)


@room_required()
def append_to(work: Path, owner: Owner, path: TreePath, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        FolderEditor(work, owner=owner) as editor,
        editor.parent_of(path, make=False) as parent,
        open(os.open(path.name, flags, dir_fd=parent), "wb") as target,  # noqa: PTH123 - dir_fd
    ):
        target.write(content)


@room_required()
def sync_folder(work: Path, owner: Owner) -> None:
    with FolderEditor(work, owner=owner) as editor:
        editor.sync()


def _remove(parent: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        with suppress(OSError):  # something is in it
            os.rmdir(name, dir_fd=parent)
