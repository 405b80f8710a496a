"""The way back: rollback, undo, what was set aside, purge."""

from collections.abc import Iterable

from fastapi import APIRouter

from contextbase.compare import FileDiff, render_unified
from contextbase.history.changes import Selection
from contextbase.history.purge import PurgeWanted
from contextbase.history.rollback import RollbackWanted
from contextbase.history.undo import UndoWanted
from contextbase.identity.model import Action, PrincipalName
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.routes.commits import change_view
from contextbase.wire.reverting import (
    BringBackCreate,
    PreviewFileView,
    PurgeCreate,
    PurgedFileView,
    PurgeView,
    RevertingView,
    RollbackCreate,
    UndoCreate,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/history", tags=["history"], responses=problem_answers(404, 409, 410, 429))


@router.post("/rollback")
async def rollback(body: RollbackCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> RevertingView:
    """Make a file, a folder or everything as it was, as new commits: all or nothing. Needs 'read' and 'write'."""
    project_id = await services.projects.id_of(caller, body.project, action=_action(body.dry_run))
    wanted = RollbackWanted(to=body.to or "", path=_path(body.path), number=body.number)
    if body.dry_run:
        diffs = await services.rollback.preview(caller, project_id, wanted)
        return _preview(diffs)
    made = await services.rollback.roll_back(caller, project_id, wanted, message=body.message)
    return RevertingView(seqs=list(made.seqs), changes=list(map(change_view, made.changes)), preview=[], contested=[])


@router.post("/undo")
async def undo(body: UndoCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> RevertingView:
    """Take back what a principal, a run or commits did, and keep what others did since. What they built on it becomes
    a review item. Needs 'read' and 'write'."""
    project_id = await services.projects.id_of(caller, body.project, action=_action(body.dry_run))
    wanted = _undo_wanted(body)
    if body.dry_run:
        preview = await services.undo.preview(caller, project_id, wanted)
        return _preview(preview.diffs, preview.contested)
    made = await services.undo.undo(caller, project_id, wanted, message=body.message)
    return RevertingView(seqs=list(made.seqs), changes=list(map(change_view, made.changes)), preview=[], contested=[])


@router.post("/bring-back")
async def bring_back(
    body: BringBackCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> RevertingView:
    """Put what was set aside where it was meant to be, in the place of what is there now. Needs 'read' and 'write'."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    made = await services.rollback.bring_back(caller, project_id, body.side_version_id, message=body.message)
    return RevertingView(seqs=list(made.seqs), changes=list(map(change_view, made.changes)), preview=[], contested=[])


@router.post("/purge")
async def purge(body: PurgeCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> PurgeView:
    """Remove contents from all history of all projects, for good. Needs 'admin', and the project's name to confirm."""
    caller.require(Action.ADMIN)  # of everything: equal contents are stored once for all projects
    project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    wanted = PurgeWanted(path=_path(body.path), content=None if body.hash is None else ContentHash.parse(body.hash))
    preview = await services.purge.preview(caller, project_id, wanted)
    deleted = preview.heads
    if not body.dry_run:
        made = await services.purge.purge(caller, project_id, wanted, confirm=body.confirm)
        deleted = made.deleted
    return PurgeView(
        hashes=list(map(str, preview.contents)),
        deleted=[PurgedFileView(project_id=project, path=path) for project, path in deleted],
        projects=list(preview.projects),
        session_files=preview.session_files,
        attachments=preview.attachments,
        purged=not body.dry_run,
    )


def _action(dry_run: bool) -> Action:
    return Action.READ if dry_run else Action.WRITE


def _path(text: str | None) -> TreePath | None:
    return None if text is None else TreePath.parse(text)


def _undo_wanted(body: UndoCreate) -> UndoWanted:
    if body.seqs is not None:
        return UndoWanted(seqs=tuple(map(Seq, body.seqs)), below=_path(body.path))
    selection = Selection(
        principal=None if body.principal is None else PrincipalName.parse(body.principal),
        run=body.run,
        **({} if body.first is None else {"after": Seq(max(body.first - 1, 0))}),
        **({} if body.last is None else {"until": Seq(body.last)}),
    )
    return UndoWanted(selection=selection, below=_path(body.path))


def _preview(diffs: Iterable[FileDiff], contested: Iterable[TreePath] = ()) -> RevertingView:
    return RevertingView(
        seqs=[], changes=[], preview=[_file(diff) for diff in diffs], contested=list(dict.fromkeys(contested))
    )


def _file(diff: FileDiff) -> PreviewFileView:
    marks = [line[:1] for hunk in diff.hunks for line in hunk.lines]
    return PreviewFileView(
        path=diff.path,
        old_path=diff.old_path,
        new_path=diff.new_path,
        status=diff.status,
        added_lines=marks.count(b"+"),
        removed_lines=marks.count(b"-"),
        patch=render_unified(diff),
    )
