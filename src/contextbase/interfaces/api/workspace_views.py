"""Workspaces as the API shows them."""

from collections.abc import Sequence

from contextbase.compare import FileDiff
from contextbase.interfaces.api.routes.commits import change_view
from contextbase.interfaces.api.routes.diffs import diff_fields
from contextbase.vocabulary import FolderChangeKind, Kind
from contextbase.wire.workspace import (
    ArrivedView,
    IgnoredView,
    KeptView,
    PendingChangeView,
    RefreshedView,
    ReportedView,
    WorkspaceChangeView,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceDiffPage,
    WorkspaceDiffView,
    WorkspaceRefreshView,
    WorkspaceStatusView,
    WorkspaceView,
)
from contextbase.workspaces.checkpoints import Committed
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.model import Ignored, Reported
from contextbase.workspaces.refresh.service import Refreshed
from contextbase.workspaces.repository import WorkspaceRecord
from contextbase.workspaces.sender import ScanResult
from contextbase.workspaces.service import Completed
from contextbase.workspaces.settlement import SettledChange

__all__ = ["commit_view", "complete_view", "diff_page", "refresh_view", "status_view", "workspace_view"]


def workspace_view(record: WorkspaceRecord) -> WorkspaceView:
    return WorkspaceView(
        id=record.id,
        project_id=record.project_id,
        agent=str(record.principal),
        path=str(record.path),
        folder=record.folder,
        meta=record.has_metadata,
        base_seq=record.base,
        shown_seq=record.shown,
        epoch=record.epoch,
        backend=record.provider,
        machine=record.node,
        state=record.state,
        commits=record.checkpoint,
        created_at=record.created_at,
        seen_at=record.seen_at,
        ended_at=record.ended_at,
    )


def status_view(record: WorkspaceRecord, look: ScanResult) -> WorkspaceStatusView:
    return WorkspaceStatusView(
        workspace=workspace_view(record),
        changes=[_pending_view(change) for change in sorted(look.changes, key=lambda change: change.path)],
        reported=[_reported_view(one) for one in look.found.reported],
        ignored=[_ignored_view(one) for one in look.found.ignored],
        notes=[_printable(note) for note in look.found.notes],
        left=[_printable(sentence) for sentence in look.left],
    )


def diff_page(files: Sequence[FileDiff], next_after: str | None, *, patch: bool) -> WorkspaceDiffPage:
    views = [WorkspaceDiffView.model_validate(diff_fields(diff, patch=patch)) for diff in files]
    return WorkspaceDiffPage(files=views, next_after=next_after)


def commit_view(record: WorkspaceRecord, committed: Committed) -> WorkspaceCommitView:
    return WorkspaceCommitView(
        workspace=workspace_view(record),
        seq=committed.seq,
        changes=[_settled_view(one) for one in committed.changes],
        reported=[_reported_view(one) for one in committed.reported],
        ignored=[_ignored_view(one) for one in committed.ignored],
        notes=[_printable(note) for note in committed.notes],
        refreshed=None if committed.refreshed is None else _refreshed_view(committed.refreshed),
    )


def refresh_view(record: WorkspaceRecord, refreshed: Refreshed) -> WorkspaceRefreshView:
    return WorkspaceRefreshView(**dict(_refreshed_view(refreshed)), workspace=workspace_view(record))


def complete_view(completed: Completed) -> WorkspaceCompleteView:
    committed = commit_view(completed.record, completed.committed)
    return WorkspaceCompleteView(
        **dict(committed),
        removed=completed.is_removed,
        kept_because=[_printable(sentence) for sentence in completed.kept_because],
    )


def _refreshed_view(refreshed: Refreshed) -> RefreshedView:
    return RefreshedView(
        seq=refreshed.seq,
        since=refreshed.since,
        arrived=[
            ArrivedView(path=one.path, change=one.kind)
            for one in sorted(refreshed.arrived, key=lambda arrived: arrived.path)
        ],
        merged=sorted(refreshed.merged),
        kept=[
            KeptView(path=one.path, code=one.reason.value, reason=one.reason.sentence)
            for one in sorted(refreshed.kept, key=lambda kept: kept.path)
        ],
    )


def _pending_view(change: PendingChange) -> PendingChangeView:
    content = change.content
    return PendingChangeView(
        path=change.path,
        change=_kind_of(change),
        renamed_from=change.renamed_from,
        kind=Kind.DELETED if content is None else content.kind,
        size=0 if content is None else content.size,
    )


def _settled_view(one: SettledChange) -> WorkspaceChangeView:
    change = one.answered.change
    answer = dict(change_view(one.answered.answer))
    own = {
        "path": change.path,
        "change": _kind_of(change),
        "renamed_from": change.renamed_from,
        "kept_at": one.kept_at,
    }
    return WorkspaceChangeView.model_validate(answer | own)


def _kind_of(change: PendingChange) -> FolderChangeKind:
    before, content = change.before, change.content
    if content is None:
        return FolderChangeKind.DELETED
    if change.renamed_from is not None:
        return FolderChangeKind.RENAMED
    if before is None:
        return FolderChangeKind.CREATED
    is_same = (before.kind, before.hash) == (content.kind, content.hash)
    return FolderChangeKind.MODE if is_same else FolderChangeKind.MODIFIED


def _reported_view(one: Reported) -> ReportedView:
    return ReportedView(
        name=one.name.decode(errors="backslashreplace"), problem=one.problem, reason=_printable(one.reason)
    )


def _ignored_view(one: Ignored) -> IgnoredView:
    rule = one.rule
    return IgnoredView(
        path=_printable(one.path),
        source=_printable(rule.source),
        line=rule.line or None,
        pattern=_printable(rule.pattern),
    )


def _printable(text: str) -> str:
    """Names in a folder may be any bytes, JSON holds Unicode: what is none is spelled out."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
