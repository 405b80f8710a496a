"""How files in a workspace differ from what the agent was given, or committed last."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from contextbase.compare import CompareLimits, FileDiff, Side, compare
from contextbase.ids import ContentHash
from contextbase.merge import EntryKind
from contextbase.threads import in_thread
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.contents import read_content
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import FolderContent, SnapshotKey
from contextbase.workspaces.ports import LocalContent, SnapshotSource
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["WorkspaceDiffs"]

_LIMITS: Final = CompareLimits()


class WorkspaceDiffs:
    def __init__(self, *, node: Machine, source: SnapshotSource) -> None:
        self._node = node
        self._source = source

    async def of(self, record: WorkspaceRecord, changes: Sequence[PendingChange]) -> list[FileDiff]:
        """One for each change; what is too large to be shown is compared by size and hash."""
        work = await (await self._node.site()).provider.work_folder(record.id)
        snapshot = SnapshotKey(project_id=record.project_id, epoch=record.epoch, seq=record.base)
        wanted = {
            change.before.hash
            for change in changes
            if change.before and change.before.hash and change.before.size <= _LIMITS.text_bytes
        }
        async with self._source.contents(snapshot, wanted) as contents:
            return await in_thread(_compared, work, changes, contents)


def _compared(
    work: Path, changes: Sequence[PendingChange], contents: Mapping[ContentHash, LocalContent]
) -> list[FileDiff]:
    with Folder(work) as folder:
        return [
            compare(
                _side(change.before, _given(change.before, contents)),
                _side(change.content, _found(change, folder)),
                path=change.path,
                old_path=change.renamed_from,
            )
            for change in changes
        ]


def _found(change: PendingChange, folder: Folder) -> bytes | None:
    """None: not loaded, or gone since it was looked at."""
    content = change.content
    if content is None or content.hash is None or content.size > _LIMITS.text_bytes:
        return None
    try:
        return read_content(change, content, folder, most=_LIMITS.text_bytes)
    except OSError:
        return None


def _given(content: FolderContent | None, contents: Mapping[ContentHash, LocalContent]) -> bytes | None:
    found = None if content is None or content.hash is None else contents.get(content.hash)
    return found.read_bytes() if isinstance(found, Path) else found


def _side(content: FolderContent | None, loaded: bytes | None) -> Side | None:
    if content is None:
        return None
    return Side(
        content=loaded,
        size=content.size,
        hash=content.hash,
        kind=EntryKind(content.kind),
        executable=content.executable,
    )
