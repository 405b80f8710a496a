"""What is written at a workspace's path while the workspace is not shown there."""

import errno
import os
from pathlib import Path

from contextbase.errors import Conflict
from contextbase.workspaces.editor import NOTICES, FolderEditor
from contextbase.workspaces.model import Owner

__all__ = ["keep_strays", "removed_if_empty"]


def keep_strays(path: str, *, work: Path, owner: Owner) -> None:
    """Make the path free. What lies there would be hidden by the workspace, or go with it: it moves to the refused
    versions among the agent's work."""
    if removed_if_empty(path):
        return
    with FolderEditor(work, owner=owner) as editor:
        kept_at = editor.keep_folder(path, "written-while-closed")
        if kept_at is None:
            raise Conflict(f"{path} has files in it from when the workspace was not shown; move them away first.")
        editor.add_note(NOTICES, f"- What was written while the workspace was not shown is in {kept_at}.\n")


def removed_if_empty(path: str) -> bool:
    """Whether nothing is there any more."""
    try:
        os.rmdir(path)  # noqa: PTH106 - a Path costs more than the folder
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True
