"""Many new files at once in an agent's folder, while the agent may be at work in it."""

import errno
import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from contextbase.ids import TreePath
from contextbase.workspaces.editor import ADDED, TEMPORARY, FolderEditor
from contextbase.workspaces.folder import remove_tree
from contextbase.workspaces.model import FolderContent
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.syscalls import Rename, rename

__all__ = ["NewFile", "add_files"]

NewFile = tuple[TreePath, FolderContent, LocalContent]
"""A file or link, by its path."""


def add_files(editor: FolderEditor, files: Iterable[NewFile]) -> None:
    """Folder by folder: one that is missing comes with all of its files at once. Where something stands, it stays."""
    with editor.own_folder(TEMPORARY) as temporary:
        for folder, there in itertools.groupby(files, key=lambda file: file[0].parent):
            with editor.unless_in_the_way(), _staging(editor, temporary) as (name, staging):
                written = [file[0] for file in there if _wrote(editor, staging, file)]
                if not (folder and written and _put_folder(editor, folder, temporary, name)):
                    _put_beside(editor, staging, written)


@contextmanager
def _staging(editor: FolderEditor, temporary: int) -> Iterator[tuple[str, int]]:
    """A new folder, to be filled and moved to its place; what is left of it goes when the block ends."""
    name = f"{ADDED}{uuid4().hex}"
    with editor.own_folder(f"{TEMPORARY}/{name}") as staging:
        try:
            yield name, staging
        finally:
            remove_tree(Path(f"/proc/self/fd/{temporary}/{name}"))


def _wrote(editor: FolderEditor, staging: int, file: NewFile) -> bool:
    path, content, source = file
    with editor.unless_in_the_way():
        editor.write_entry(staging, path.name, content, source)
        return True
    try:
        os.unlink(path.name, dir_fd=staging)  # half of it, perhaps
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise
    return False


def _put_folder(editor: FolderEditor, folder: TreePath, temporary: int, name: str) -> bool:
    with editor.parent_of(folder, make=True) as above, suppress(FileExistsError):
        rename(name, folder.name, Rename.NOREPLACE, source_folder=temporary, target_folder=above)
        return True
    return False


def _put_beside(editor: FolderEditor, staging: int, written: list[TreePath]) -> None:
    """Into the folder that they share, which is there."""
    if not written:
        return
    with editor.parent_of(written[0], make=False) as parent:
        for path in written:
            with suppress(FileExistsError):
                rename(path.name, path.name, Rename.NOREPLACE, source_folder=staging, target_folder=parent)
