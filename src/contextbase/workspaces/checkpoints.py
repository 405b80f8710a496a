"""One checkpoint of a workspace from end to end: look, store, write down, commit, settle in the folder, hold.

A crash at any point leaves either nothing, or a checkpoint that was written down: the next call sends that again, as it
was, before it looks for anything new.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextbase.audit.model import OperatorType
from contextbase.db.database import Database
from contextbase.feed.model import NewEvent
from contextbase.feed.repository import FeedRepository
from contextbase.gate.model import ChangeStatus, check_words
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.storage.blobs.waiting import in_thread
from contextbase.workspaces.editing import FolderEditor
from contextbase.workspaces.model import Owner, Reported, SnapshotKey
from contextbase.workspaces.node import Node
from contextbase.workspaces.pending import Checkpoint
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.registry import Record, Registry
from contextbase.workspaces.sending import Answered, Look, Sender
from contextbase.workspaces.settling import ConflictsIn, Settled, Settlement, contents_needed, needs_folder, settle

__all__ = ["Checkpoints", "Committed", "Wish"]

_MOST_EVENTS: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """How somebody wants a workspace to be committed."""

    message: str = ""
    run: str | None = None
    conflicts_in: ConflictsIn = ConflictsIn.REVIEW

    def __post_init__(self) -> None:
        check_words(self.message, self.run)


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    """What a commit of a workspace came to."""

    seq: Seq | None  # of the last commit that was needed; None: none was
    changes: tuple[Settled, ...] = ()
    reported: tuple[Reported, ...] = ()  # still in the folder, and not committed
    ignored: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[Settled, ...]:
        return tuple(one for one in self.changes if one.answered.answer.status is ChangeStatus.REFUSED)


class Checkpoints:
    def __init__(
        self,
        *,
        database: Database,
        registry: Registry,
        source: SnapshotSource,
        sender: Sender,
        node: Node,
        hint: Callable[[ProjectId], None],
    ) -> None:
        self._database = database
        self._registry = registry
        self._source = source
        self._sender = sender
        self._node = node
        self._hint = hint
        self._feed = FeedRepository()

    async def look(self, record: Record) -> Look:
        return await self._sender.look(record)

    async def make(
        self, caller: Caller, record: Record, wish: Wish, *, operator_type: OperatorType, last: bool = False
    ) -> Committed:
        """Commit what is new. With `last` the workspace is closed and about to go: the folder is left alone, but for
        what was refused."""
        earlier: list[Settled] = []
        if record.pending is not None:
            earlier, record = await self._send(caller, record, record.pending, wish, operator_type, last=last)
        look = await self._sender.look(record)
        checkpoint: Checkpoint | None = None
        busy: tuple[Reported, ...] = ()
        if look.changes:
            checkpoint, busy = await self._sender.begin(caller, record, look, message=wish.message, run=wish.run)
        settled: list[Settled] = []
        if checkpoint is not None:
            settled, record = await self._send(caller, record, checkpoint, wish, operator_type, last=last)
        changes = (*earlier, *settled)
        return Committed(
            seq=changes[-1].answered.seq if changes else None,
            changes=changes,
            reported=(*look.found.reported, *busy),
            ignored=look.found.ignored,
        )

    async def _send(
        self,
        caller: Caller,
        record: Record,
        checkpoint: Checkpoint,
        wish: Wish,
        operator_type: OperatorType,
        *,
        last: bool,
    ) -> tuple[list[Settled], Record]:
        """Returns what became of each change, and the record as it is then."""
        answered, failure = await self._sender.commit(caller, record, checkpoint, operator_type=operator_type)
        settlement = await self._settle(record, answered, wish, last=last)
        refusals = [one for one in settlement.settled if one.answered.answer.status is ChangeStatus.REFUSED]
        async with self._database.transaction() as connection:
            ended = await self._registry.end_checkpoint(connection, record.id, checkpoint, settlement.held)
            if ended and refusals:
                events = [_refusal(record, one) for one in refusals[:_MOST_EVENTS]]
                await self._feed.append_events(connection, record.project_id, events)
            now = await self._registry.open_one(connection, record.project_id, record.principal.id)
        if refusals:
            self._hint(record.project_id)
        if failure is not None:
            raise failure
        return settlement.settled, now or record

    async def _settle(self, record: Record, answered: Sequence[Answered], wish: Wish, *, last: bool) -> Settlement:
        wanted = [
            (one.answer.node_id, one.answer.number)
            for one in answered
            if one.answer.node_id is not None and one.answer.number is not None
        ]
        async with self._database.connection() as connection:
            versions = await self._registry.versions(connection, record.project_id, wanted)
        provider = (await self._node.site()).provider
        refused = any(one.answer.status is ChangeStatus.REFUSED for one in answered)
        root: Path | None = None
        if refused or (not last and needs_folder(answered, versions, wish.conflicts_in)):
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
                owner=self._node.owner,
                conflicts_in=wish.conflicts_in,
            )


def _sync(work: Path, owner: Owner) -> None:
    with FolderEditor(work, owner=owner) as editor:
        editor.sync()


def _refusal(record: Record, settled: Settled) -> NewEvent:
    answer = settled.answered.answer
    payload: dict[str, object] = {
        "workspace_id": str(record.id),
        "path": answer.path,
        "code": answer.code,
        "reason": answer.reason,
        "kept_at": settled.kept_at,
    }
    path: TreePath = answer.path
    return NewEvent(kind="workspace.refused", principal_id=record.principal.id, path=path, payload=payload)
