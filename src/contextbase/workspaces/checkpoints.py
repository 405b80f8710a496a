"""One checkpoint of a workspace from end to end: look, store, write down, commit, settle in the folder, hold.

A crash at any point leaves either nothing, or a checkpoint that was written down: the next call sends that again, as it
was, before it looks for anything new.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from contextbase.db.database import Database
from contextbase.gate.model import ChangeStatus, check_message_id, check_words
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, Seq
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.repository import StreamRepository
from contextbase.threads import in_thread
from contextbase.workspaces.checkpoint_record import Checkpoint
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import Ignored, Owner, Reported, SnapshotKey
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.refresh.service import Refreshed
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from contextbase.workspaces.sender import AnsweredChange, ScanResult, Sender
from contextbase.workspaces.settlement import (
    ConflictsIn,
    FolderSettlement,
    SettledChange,
    contents_needed,
    needs_folder,
    settle,
)

__all__ = ["Checkpoints", "Committed", "Wish"]

_MOST_EVENTS: Final = 1000
_NOTICES: Final = {
    ChangeStatus.REFUSED: "workspace.refused",
    ChangeStatus.IN_REVIEW: "workspace.in_review",
    ChangeStatus.SUPERSEDED: "workspace.superseded",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """How somebody wants a workspace to be committed."""

    message: str = ""
    message_id: str | None = None  # of the conversation's message that asked for it
    run: str | None = None
    conflicts_in: ConflictsIn = ConflictsIn.REVIEW
    allow: tuple[str, ...] = ()  # patterns of files that may be shared though they look like credentials

    def __post_init__(self) -> None:
        check_words(self.message, self.run)
        check_message_id(self.message_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    """What a commit of a workspace came to."""

    seq: Seq | None  # of the last commit that was made; None: nothing was to be done, or all was refused
    changes: tuple[SettledChange, ...] = ()
    reported: tuple[Reported, ...] = ()  # still in the folder, and not committed
    ignored: tuple[Ignored, ...] = ()
    notes: tuple[str, ...] = ()
    refreshed: Refreshed | None = None  # if that was asked for, and could be done

    @property
    def told(self) -> str:
        """What became of the changes, as a part of a sentence."""
        counts = Counter(one.answered.answer.status for one in self.changes)
        told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
        return told or "nothing was to be committed"

    @property
    def refused(self) -> tuple[SettledChange, ...]:
        return tuple(one for one in self.changes if one.answered.answer.status is ChangeStatus.REFUSED)


class Checkpoints:
    def __init__(
        self,
        *,
        database: Database,
        registry: WorkspaceRepository,
        source: SnapshotSource,
        sender: Sender,
        node: Machine,
        hint: Callable[[ProjectId], None],
    ) -> None:
        self._database = database
        self._registry = registry
        self._source = source
        self._sender = sender
        self._node = node
        self._hint = hint
        self._streams = StreamRepository()

    async def look(self, record: WorkspaceRecord) -> ScanResult:
        return await self._sender.look(record)

    async def make(
        self, caller: Caller, record: WorkspaceRecord, wish: Wish, *, last: bool = False
    ) -> tuple[WorkspaceRecord, Committed]:
        """Commit what is new; returns the workspace as it is then, too. With `last` it is closed and about to go: the
        folder is left alone, but for what was refused."""
        earlier, record = await self.resume(caller, record, wish, last=last)
        look = await self._sender.look(record, allow=wish.allow)
        checkpoint: Checkpoint | None = None
        busy: tuple[Reported, ...] = ()
        if look.changes:
            checkpoint, busy = await self._sender.begin(
                caller, record, look, message=wish.message, message_id=wish.message_id, run=wish.run
            )
        settled: list[SettledChange] = []
        if checkpoint is not None:
            settled, record = await self._send(caller, record, checkpoint, wish, last=last)
        changes = (*earlier, *settled)
        return record, Committed(
            seq=max((one.answered.seq for one in changes if one.answered.is_committed), default=None),
            changes=changes,
            reported=(*look.found.reported, *busy),
            ignored=look.found.ignored,
            notes=look.found.notes,
        )

    async def resume(
        self, caller: Caller, record: WorkspaceRecord, wish: Wish, *, last: bool = False
    ) -> tuple[list[SettledChange], WorkspaceRecord]:
        """Send again what was written down and cut off, if there is anything."""
        if record.pending is None:
            return [], record
        return await self._send(caller, record, record.pending, wish, last=last)

    async def _send(
        self,
        caller: Caller,
        record: WorkspaceRecord,
        checkpoint: Checkpoint,
        wish: Wish,
        *,
        last: bool,
    ) -> tuple[list[SettledChange], WorkspaceRecord]:
        """Returns what became of each change, and the record as it is then."""
        answered, failure = await self._sender.commit(caller, record, checkpoint)
        settlement = await self._settle(record, answered, wish, last=last)
        notices = [one for one in settlement.settled if one.answered.answer.status in _NOTICES]
        now = await self._ended(record, checkpoint, settlement, notices)
        if notices:
            self._hint(record.project_id)
        if failure is not None:
            raise failure
        return settlement.settled, now

    async def _ended(
        self,
        record: WorkspaceRecord,
        checkpoint: Checkpoint,
        settlement: FolderSettlement,
        notices: Sequence[SettledChange],
    ) -> WorkspaceRecord:
        """The workspace as it is when the checkpoint has ended and its agent is told; if another call has ended it, as
        that left it."""
        # A statement by itself is a transaction, and saves the trips for its begin and end.
        database = self._database
        async with database.transaction() if notices else database.connection() as connection:
            seen_at = await self._registry.end_checkpoint(connection, record.id, checkpoint, settlement.held)
            if seen_at is None:
                return await self._registry.open_one(connection, record.project_id, record.principal.id) or record
            if notices:
                events = [_notice(record, one) for one in notices[:_MOST_EVENTS]]
                await self._streams.append(connection, Scope.project(record.project_id), events)
        return replace(record, checkpoint=checkpoint.number + 1, pending=None, seen_at=seen_at)

    async def _settle(
        self, record: WorkspaceRecord, answered: Sequence[AnsweredChange], wish: Wish, *, last: bool
    ) -> FolderSettlement:
        wanted = [
            (one.answer.node_id, one.answer.number)
            for one in answered
            if one.answer.node_id is not None and one.answer.number is not None
        ]
        async with self._database.connection() as connection:
            versions = await self._registry.versions(connection, record.project_id, wanted)
            held = await self._registry.held(connection, record.id) if record.has_held else {}
        provider = (await self._node.site()).provider
        refused = any(one.answer.status is ChangeStatus.REFUSED for one in answered)
        root: Path | None = None
        if refused or (not last and needs_folder(answered, versions)):
            root = (await provider.open_workspace(record.id)).path
        elif not last:
            work = await provider.work_folder(record.id)
            await in_thread(_sync, work, self._node.owner)
        needed = contents_needed(answered, versions, wish.conflicts_in) if root is not None else set()
        snapshot = SnapshotKey(project_id=record.project_id, epoch=record.epoch, seq=record.base)
        async with self._source.contents(snapshot, needed) as contents:
            return await in_thread(
                settle,
                root,
                answered,
                versions,
                contents,
                held=held,
                owner=self._node.owner,
                conflicts_in=wish.conflicts_in,
            )


def _sync(work: Path, owner: Owner) -> None:
    with FolderEditor(work, owner=owner) as editor:
        editor.sync()


def _notice(record: WorkspaceRecord, settled: SettledChange) -> NewEvent:
    """Tells the agent that its change is not in the head, or not all of it."""
    answer, place = settled.answered.answer, record.paths.in_project(settled.answered.answer.path)
    payload: dict[str, object] = {"workspace_id": str(record.id), "path": place}
    if answer.status is ChangeStatus.REFUSED:
        payload |= {"code": answer.code, "reason": answer.reason, "kept_at": settled.kept_at}
    else:
        payload["side_version_id"] = str(answer.side_version_id)
    if answer.status is ChangeStatus.IN_REVIEW:
        payload |= {"review_id": str(answer.review_id), "reason": answer.reason}
    kind = _NOTICES[answer.status]
    return NewEvent(kind=kind, principal_id=record.principal.id, path=place, payload=payload)
