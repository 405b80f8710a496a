"""A refresh from end to end: find what others changed, plan, stage, write down, do, hold.

A crash at any point leaves either nothing but files that nobody looks for, or a journal: the next call finishes that
before it does anything else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.db.database import Database
from contextbase.errors import Conflict, CursorOutdated
from contextbase.gate.service import Gate, OpenedProject
from contextbase.identity.model import Caller
from contextbase.ids import Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.commit_plan import CommittedPath
from contextbase.workspaces.editor import NOTICES, FolderEditor
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import FolderChangeKind, FolderContent, Owner, SnapshotKey
from contextbase.workspaces.place_reads import PlaceReads
from contextbase.workspaces.ports import LocalContent, SnapshotSource
from contextbase.workspaces.refresh.edits import MayBeShown, Outcome, StagedEdits, clear_leftovers
from contextbase.workspaces.refresh.journal import RefreshJournal, RefreshStep
from contextbase.workspaces.refresh.merges import RefreshMerges, contents_needed
from contextbase.workspaces.refresh.others import others_changes
from contextbase.workspaces.refresh.plan import (
    KeptReason,
    OthersChange,
    PathPlan,
    RefreshAction,
    emptied_folders,
    in_order,
    plan,
)
from contextbase.workspaces.refresh.target import RefreshTarget, may_be_shown
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from contextbase.workspaces.sender import Sender

__all__ = ["ArrivedPath", "KeptPath", "Refreshed", "Refreshes"]

_BATCH_STEPS: Final = 1000
_BATCH_BYTES: Final = 32 << 20
_MOST_NOTICES: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrivedPath:
    path: TreePath
    kind: FolderChangeKind


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptPath:
    path: TreePath
    reason: KeptReason


@dataclass(kw_only=True, slots=True)
class Refreshed:
    """What a refresh came to."""

    seq: Seq  # the snapshot that the folder shows now, but for what the agent changed and what was kept
    since: Seq  # the one it showed before
    arrived: list[ArrivedPath] = field(default_factory=list)
    merged: list[TreePath] = field(default_factory=list)  # into files that the agent changed
    kept: list[KeptPath] = field(default_factory=list)  # as the agent has them

    @property
    def told(self) -> str:
        """As a part of a sentence."""
        return f"{len(self.arrived)} arrived, {len(self.merged)} merged, {len(self.kept)} kept"

    def keep(self, paths: Iterable[tuple[TreePath, KeptReason]]) -> None:
        self.kept += [KeptPath(path=path, reason=reason) for path, reason in paths]

    def add(self, step: RefreshStep, outcome: Outcome) -> None:
        if outcome is not None:
            self.keep([(step.path, outcome)])
        elif step.is_merge:
            self.merged.append(step.path)
        else:
            self.arrived.append(ArrivedPath(path=step.path, kind=_kind_of(step)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Refreshes:
    database: Database
    gate: Gate
    registry: WorkspaceRepository
    source: SnapshotSource
    sender: Sender
    node: Machine
    merges: RefreshMerges

    async def finish(self, acting: Caller, record: WorkspaceRecord) -> WorkspaceRecord:
        """Carry out what a refresh had begun when a crash cut it off; returns the record as it is then."""
        if record.refresh is None:
            return record
        opened = await self._opened(acting, record)
        root = (await (await self.node.site()).provider.open_workspace(record.id)).path
        await self._carry_out(root, record, record.refresh, lambda path: may_be_shown(path, record, opened))
        return replace(record, refresh=None)

    async def make(self, acting: Caller, record: WorkspaceRecord) -> tuple[WorkspaceRecord, Refreshed]:
        """Bring others' changes into the folder, up to the head; returns the workspace as it is then, too. Nothing else
        may be under way in it."""
        target = await self._target(acting, record)
        opened, refreshed = target.opened, Refreshed(seq=target.opened.seq, since=record.shown)
        async with self.database.connection() as connection:
            changes = await others_changes(connection, self.registry, target)
        plans = plan(changes, target.look.changes, target.look.found, target.strategy_for)
        refreshed.keep((one.change.path, one.reason) for one in plans if one.reason is not None)
        agreed = [one.change for one in plans if one.action is RefreshAction.AGREE]
        left = await self._folders_left(target, plans)
        for batch in _batches(in_order(plans)):
            agreed += await self._bring(target, batch, left, refreshed)
        kept = {one.path for one in refreshed.kept}
        async with self.database.transaction() as connection:
            await self.registry.end_refresh(
                connection,
                record.id,
                seq=opened.seq,
                policy_version=opened.policy.version,
                agreed={one.path: _held(one, opened.seq, one.head) for one in agreed},
                kept={one.path: _held(one, one.base, one.given) for one in changes if one.path in kept},
                unseen=[path for path in target.look.held if not target.shows(path)],
            )
        if refreshed.arrived or refreshed.merged or refreshed.kept:
            await in_thread(_tell, target.root, self.node.owner, refreshed)
        return replace(record, refreshed=opened.seq, policy_version=opened.policy.version), refreshed

    async def _opened(self, acting: Caller, record: WorkspaceRecord) -> OpenedProject:
        async with self.database.connection() as connection:
            return await self.gate.opened(connection, acting, record.project_id)

    async def _target(self, acting: Caller, record: WorkspaceRecord) -> RefreshTarget:
        opened = await self._opened(acting, record)
        if opened.epoch != record.epoch:
            raise CursorOutdated(
                "The project was restored from a backup after this workspace was made. Copy what you need from its "
                "folder, then abandon it and create a new one."
            )
        provider = (await self.node.site()).provider
        root = (await provider.open_workspace(record.id)).path
        await in_thread(_clear_leftovers, root, self.node.owner)
        look, work = await self.sender.look(record), await provider.work_folder(record.id)
        pending = {change.path: change for change in look.changes}
        return RefreshTarget(record=record, opened=opened, look=look, pending=pending, root=root, work=work)

    async def _folders_left(self, target: RefreshTarget, plans: Sequence[PathPlan]) -> tuple[TreePath, ...]:
        """The folders that may go with the last file in them: no nodes, and not what the agent made."""
        left = emptied_folders(plans) - target.pending.keys()
        reads = PlaceReads(self.registry, target.record)
        async with self.database.connection() as connection:
            nodes = await reads.nodes_at(connection, target.opened.seq, left)
        nodes_left = {path for path, content in nodes.items() if content.kind is Kind.DIRECTORY}
        return tuple(sorted(left - nodes_left, reverse=True))

    async def _bring(
        self, target: RefreshTarget, batch: Sequence[PathPlan], left: Sequence[TreePath], refreshed: Refreshed
    ) -> list[OthersChange]:
        """Stage the batch, write it down, do it. Returns what turned out to be in the folder already."""
        record, root, seq = target.record, target.root, target.opened.seq
        snapshot = SnapshotKey(project_id=record.project_id, epoch=record.epoch, seq=seq)
        gone = {folder for one in batch if one.change.head is None for folder in one.change.path.folders}
        async with self.source.contents(snapshot, contents_needed(batch)) as contents:
            prepared = await self.merges.prepared(target, batch, contents)
            emptied = tuple(folder for folder in left if folder in gone)
            journal = RefreshJournal(id=uuid4().hex, seq=seq, steps=tuple(prepared.steps), emptied=emptied)
            failed = await in_thread(_stage, root, self.node.owner, journal, prepared.sources)
        refreshed.keep(prepared.kept.items())
        refreshed.keep((step.path, failed[step.number]) for step in journal.steps if step.number in failed)
        journal = replace(journal, steps=tuple(step for step in journal.steps if step.number not in failed))
        if journal.steps:
            async with self.database.connection() as connection:
                if not await self.registry.begin_refresh(connection, record.id, journal):
                    raise Conflict("Another call is committing the workspace, or has ended it; ask for its status.")
            outcomes = await self._carry_out(root, record, journal, target.shows)
            for step in journal.steps:
                refreshed.add(step, outcomes[step.number])
        return prepared.agreed

    async def _carry_out(
        self, root: Path, record: WorkspaceRecord, journal: RefreshJournal, may: MayBeShown
    ) -> dict[int, Outcome]:
        outcomes = await in_thread(_carry_out, root, self.node.owner, journal, may)
        done = {number for number, outcome in outcomes.items() if outcome is None}
        async with self.database.transaction() as connection:
            await self.registry.end_refresh_step(connection, record.id, journal.held(done))
        await in_thread(_clear, root, self.node.owner, journal, outcomes)
        return outcomes


def _held(change: OthersChange, base: Seq, content: FolderContent | None) -> CommittedPath:
    return CommittedPath(base=base, content=content, origin=None if content is None else change.origin)


def _batches(plans: Iterable[PathPlan]) -> Iterator[list[PathPlan]]:
    """Of what is to be done, as much as is staged at once."""
    batch: list[PathPlan] = []
    size = 0
    for one in plans:
        if one.action not in (RefreshAction.PLACE, RefreshAction.MERGE):
            continue
        batch.append(one)
        size += 0 if one.change.head is None else one.change.head.size
        if len(batch) >= _BATCH_STEPS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _kind_of(step: RefreshStep) -> FolderChangeKind:
    if step.expected is None:
        return FolderChangeKind.CREATED
    if step.content is None:
        return FolderChangeKind.DELETED
    is_mode = step.expected.hash == step.content.hash and step.expected.kind is step.content.kind
    return FolderChangeKind.MODE if is_mode else FolderChangeKind.MODIFIED


def _clear_leftovers(root: Path, owner: Owner) -> None:
    with FolderEditor(root, owner=owner) as editor:
        clear_leftovers(editor)


def _stage(
    root: Path, owner: Owner, journal: RefreshJournal, sources: Mapping[int, LocalContent]
) -> dict[int, KeptReason]:
    with FolderEditor(root, owner=owner) as editor:
        return StagedEdits(editor, journal).stage(sources)


def _carry_out(root: Path, owner: Owner, journal: RefreshJournal, may: MayBeShown) -> dict[int, Outcome]:
    with FolderEditor(root, owner=owner) as editor:
        return StagedEdits(editor, journal).carry_out(may)


def _clear(root: Path, owner: Owner, journal: RefreshJournal, outcomes: Mapping[int, Outcome]) -> None:
    with FolderEditor(root, owner=owner) as editor:
        StagedEdits(editor, journal).clear(outcomes)


def _tell(root: Path, owner: Owner, refreshed: Refreshed) -> None:
    """One line each for what concerns the agent's own work, and one for the rest."""
    lines = [f"{path}: changes of others were merged into your copy." for path in refreshed.merged]
    lines += [
        f"{one.path}: others changed it, and you have your own version still ({one.reason})." for one in refreshed.kept
    ]
    more = len(lines) - _MOST_NOTICES
    lines = lines[:_MOST_NOTICES] + ([f"… and {more} more like these."] if more > 0 else [])
    lines.append(f"The folder shows snapshot {refreshed.seq} now: {refreshed.told}.")
    with FolderEditor(root, owner=owner) as editor:
        editor.add_note(NOTICES, "".join(f"- {line}\n" for line in lines))
