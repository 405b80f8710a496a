"""The bytes of a change: in the agent's work folder or, if they came with a renamed folder, in a mirror layer."""

import os
from collections.abc import Iterable
from pathlib import Path

from contextbase.ids import ContentHash
from contextbase.storage.model import Kind
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent

__all__ = ["open_content", "read_content", "read_contents"]


def read_content(change: PendingChange, content: FolderContent, work: Folder, *, most: int) -> bytes:
    """A file's bytes, no more of them than `most`, or a link's target. The agent may write on in the work folder."""
    file, is_link = change.layer_file, content.kind is Kind.SYMLINK
    if file is None:
        return work.link_target(change.path) if is_link else work.read(change.path, most=most)
    if is_link:
        return os.readlink(os.fsencode(file))  # noqa: PTH115 - a Path would respell it
    with Path(file).open("rb") as opened:
        return opened.read(most)


def read_contents(work: Path, changes: Iterable[PendingChange]) -> tuple[dict[ContentHash, bytes], set[str]]:
    """The contents as they were detected, and the paths at which something else is by now."""
    contents: dict[ContentHash, bytes] = {}
    busy: set[str] = set()
    with Folder(work) as folder:
        for change in changes:
            content = change.content
            if content is None or content.hash is None or content.hash in contents:
                continue
            try:
                found = read_content(change, content, folder, most=content.size + 1)
            except OSError:
                busy.add(change.path)
                continue
            if ContentHash.of(found) == content.hash:
                contents[content.hash] = found
            else:
                busy.add(change.path)
    return contents, busy


def open_content(change: PendingChange, work: Path) -> int:
    """A descriptor of the plain file."""
    if change.layer_file is not None:
        return os.open(change.layer_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with Folder(work) as folder:
        return folder.open_file(change.path)
