"""A user's own files in the folder of an app's session: what was done there goes through the gate, and what others did
comes back."""

import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contextbase.audit.model import WayIn
from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.layers import LayerFiles, StepAction, overlay_steps
from contextbase.catalog.manifest import inside
from contextbase.catalog.model import AppSession
from contextbase.db.database import Database
from contextbase.errors import BlobCorrupted, ContentPurged, InvalidPath
from contextbase.gate.model import ChangeAction, ChangeStatus, CommitRequest, Content, ContentKind, RequestedChange
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller, Grant, GrantSource
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.sessions.layer_files import put_layer, standing_below, take_away
from contextbase.sessions.model import AgentSession
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.wire.manifest import MountName, RuntimeManifest
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent, Owner, SnapshotKey
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["UserFiles"]

_INLINE: Final = 64 << 10
_PIECE: Final = 1 << 20
_BATCH: Final = 500
_NOTHING: Final = frozenset[TreePath]()
_KINDS: Final = {Kind.FILE: ContentKind.FILE, Kind.SYMLINK: ContentKind.SYMLINK}


@dataclass(frozen=True, kw_only=True, slots=True)
class UserFiles:
    database: Database
    gate: Gate
    sessions: AppSessionRepository
    source: SnapshotSource
    owner: Owner

    async def exchange(
        self,
        session: AgentSession,
        row: AppSession,
        record: WorkspaceRecord,
        manifest: RuntimeManifest,
        base: Seq | None,
    ) -> Seq | None:
        """Both ways; returns the snapshot that the folder has then. `base`: that it had before; None: it is new, and
        what is missing in it was not removed by anybody."""
        point = manifest.mount(MountName.USER_FILES)
        target = None if point is None else inside(point.target_path)
        if point is None or target is None:
            return None
        place = AppPlace(app=row.app, project=row.project, login=row.login).user_files
        standing = await in_thread(standing_below, record.path, target)
        kept: Collection[TreePath] = ()
        if not point.read_only and Action.WRITE in session.actions:
            kept = await self._send(session, row, record, place, (target, standing, base))
        async with self.database.connection() as connection:
            seq = await self.sessions.head_of(connection, row.tree)
            layer = await self.sessions.below(connection, row.tree, seq, place)
        steps = [step for step in overlay_steps(_NOTHING, standing=standing, layer=layer) if step.path not in kept]
        await in_thread(take_away, record.path, self.owner, steps, standing=standing, below=target)
        written = [step for step in steps if step.action is StepAction.WRITE]
        for start in range(0, len(written), _BATCH):
            batch = written[start : start + _BATCH]
            hashes = {name for step in batch if (name := layer[step.path].hash) is not None}
            key = SnapshotKey(project_id=row.tree, epoch=record.epoch, seq=seq)
            async with self.source.contents(key, hashes) as contents:
                await in_thread(
                    put_layer,
                    record.path,
                    self.owner,
                    batch,
                    standing=standing,
                    layer=layer,
                    contents=contents,
                    below=target,
                )
        return seq

    async def _send(
        self,
        session: AgentSession,
        row: AppSession,
        record: WorkspaceRecord,
        place: TreePath,
        found: tuple[TreePath, LayerFiles, Seq | None],
    ) -> Collection[TreePath]:
        """What was done in the folder; returns the paths that did not go in, and stay as they are there."""
        target, standing, base = found
        before: Mapping[TreePath, FolderContent] = {}
        if base is not None:
            async with self.database.connection() as connection:
                before = await self.sessions.below(connection, row.tree, base, place)
        caller = _caller(session, row, place)
        kept: set[TreePath] = set()
        changes: list[RequestedChange] = []
        for path in sorted(before.keys() | standing.keys()):
            content = standing.get(path)
            if content == before.get(path):
                continue
            try:
                in_project = TreePath(f"{place}/{path}")
                change = await self._change(caller, record, (target / path, in_project), content, base or Seq(0))
            except (InvalidPath, OSError, BlobCorrupted, ContentPurged):  # such as a file that is being written
                kept.add(path)
                continue
            changes.append(change)
        for start in range(0, len(changes), _BATCH):
            left = await self._left_by_gate(caller, row, changes[start : start + _BATCH])
            kept |= {TreePath.stored(path.removeprefix(f"{place}/")) for path in left}
        return kept

    async def _left_by_gate(
        self, caller: Caller, row: AppSession, changes: Sequence[RequestedChange]
    ) -> Collection[TreePath]:
        """The paths of those that it did not take. One with a purged content keeps out all that come with it, so they
        go one by one then."""
        request = CommitRequest(project_id=row.tree, changes=tuple(changes), message="Change files of the user")
        try:
            answer = await self.gate.commit(caller, request)
        except ContentPurged:
            if len(changes) == 1:
                return [changes[0].path]
            return [path for change in changes for path in await self._left_by_gate(caller, row, [change])]
        return [change.path for change in answer.changes if change.status is ChangeStatus.REFUSED]

    async def _change(
        self,
        caller: Caller,
        record: WorkspaceRecord,
        paths: tuple[TreePath, TreePath],
        content: FolderContent | None,
        base: Seq,
    ) -> RequestedChange:
        """`paths`: in the folder, and in the app's tree."""
        path, in_project = paths
        if content is None:
            return RequestedChange(action=ChangeAction.DELETE, path=in_project, base=base)
        if content.kind is Kind.DIRECTORY or content.hash is None:
            return RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=in_project, base=base)
        return RequestedChange(
            action=ChangeAction.WRITE,
            path=in_project,
            base=base,
            content=await self._content(caller, record, path, content),
            kind=_KINDS[content.kind],
            executable=content.executable if content.kind is Kind.FILE else None,
        )

    async def _content(
        self, caller: Caller, record: WorkspaceRecord, path: TreePath, content: FolderContent
    ) -> Content:
        expected = content.hash
        if content.kind is Kind.SYMLINK or content.size <= _INLINE:
            inline = await in_thread(_read, record, path, content)
            if expected is None or ContentHash.of(inline) != expected:
                raise BlobCorrupted(f"{path} was changed while it was stored.")
            return Content(hash=expected, size=len(inline), inline=inline)
        descriptor = await in_thread(_open, record, path)
        try:
            stored = await self.gate.upload(
                caller, record.project_id, _pieces(descriptor, content.size), expected=expected
            )
        finally:
            os.close(descriptor)
        return Content(hash=stored.hash, size=stored.size)


def _caller(session: AgentSession, row: AppSession, place: TreePath) -> Caller:
    """The session's agent, in the user's own files."""
    grant = Grant(source=GrantSource.RUN, actions=session.actions, project_id=row.tree, path_prefix=place)
    return Caller(
        principal=session.agent,
        grant=grant,
        way_in=WayIn.AGENT,
        on_behalf_of=session.owner,
        origin=f"session:{session.id}",
    )


def _read(record: WorkspaceRecord, path: TreePath, content: FolderContent) -> bytes:
    with Folder(record.path) as folder:
        if content.kind is Kind.SYMLINK:
            return folder.link_target(path)
        return folder.read(path, most=content.size + 1)


def _open(record: WorkspaceRecord, path: TreePath) -> int:
    with Folder(record.path) as folder:
        return folder.open_file(path)


async def _pieces(descriptor: int, size: int) -> AsyncIterator[bytes]:
    offset = 0
    while offset < size:
        piece = await in_thread(os.pread, descriptor, min(_PIECE, size - offset), offset)
        if not piece:
            return
        offset += len(piece)
        yield piece
