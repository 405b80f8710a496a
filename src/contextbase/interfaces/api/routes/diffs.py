"""What differs between snapshots and versions."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from contextbase.compare import FileDiff, render_changes, render_unified, to_dict
from contextbase.errors import InvalidInput
from contextbase.history.diffs import ComparedFile
from contextbase.identity.model import PrincipalName
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToRead
from contextbase.storage.model import Version
from contextbase.wire.commit import MOST_SEQ
from contextbase.wire.diff import DiffPageView, FileDiffView
from contextbase.wire.snapshot import LONGEST_REF

__all__ = ["Patch", "diff_fields", "router"]

router = APIRouter(prefix="/api/v1/history", tags=["history"], responses=problem_answers(404, 429))

Number = Annotated[int, Query(ge=1, le=2**31 - 1)]
Context = Annotated[int, Query(ge=0, le=1000, description="Unchanged lines around each change.")]
Patch = Annotated[bool, Query(description="Also as git writes it.")]


@router.get("/diff")
async def diff(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    old: Annotated[str | None, Query(max_length=LONGEST_REF, description="A snapshot; see /resolve.")] = None,
    new: Annotated[str, Query(max_length=LONGEST_REF)] = "head",
    commit: Annotated[int | None, Query(ge=1, le=MOST_SEQ, description="In the place of old and new.")] = None,
    principal: Annotated[str | None, Query(max_length=120, description="What it did, of all that was done.")] = None,
    run: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    path: Annotated[str | None, Query(max_length=2048, description="A file, or a folder and all in it.")] = None,
    after: Annotated[str, Query(max_length=2048, pattern=r"^[^\x00]*$")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    context: Context = 3,
    patch: Patch = False,
) -> DiffPageView:
    """What differs between two snapshots, or what a commit, a principal or a run changed."""
    if (commit is None) == (old is None) and (commit is not None or (principal is None and run is None)):
        raise InvalidInput("Say what to compare: old (and new), commit, principal or run.")
    folder = TreePath.parse(path) if path else None
    first, last = (old or "0", new) if commit is None else (str(commit - 1), str(commit))
    if principal is None and run is None:
        page = await services.diffs.between(
            caller, project_id, first, last, path=folder, after=after, limit=limit, context=context
        )
    else:
        page = await services.diffs.of_work(
            caller,
            project_id,
            first,
            last,
            principal=None if principal is None else PrincipalName.parse(principal),
            run=run,
            path=folder,
            after=after,
            limit=limit,
            context=context,
        )
    return DiffPageView(
        old=page.old, new=page.new, files=[_view(file, patch=patch) for file in page.files], next_after=page.next_after
    )


@router.get("/diff/versions")
async def diff_versions(
    *,
    project_id: ProjectToRead,
    path: Annotated[str, Query(max_length=2048)],
    old: Number,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    new: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Null: as it is now.")] = None,
    context: Context = 3,
    patch: Patch = False,
) -> FileDiffView:
    """What differs between two versions of a file, by number."""
    place = TreePath.parse(path)
    return _view(await services.diffs.of_versions(caller, project_id, place, old, new, context=context), patch=patch)


def _view(file: ComparedFile, *, patch: bool) -> FileDiffView:
    body = diff_fields(file.diff, patch=patch)
    for name, version in (("old", file.pair.old), ("new", file.pair.new)):
        body[name] = body[name] and body[name] | _numbers(version)
    return FileDiffView.model_validate(body | {"node_id": file.pair.node_id})


def diff_fields(diff: FileDiff, *, patch: bool) -> dict[str, Any]:
    """What every view of a comparison shows, whatever it compares."""
    marks = [line[:1] for hunk in diff.hunks for line in hunk.lines]
    return to_dict(diff) | {
        "added_lines": marks.count(b"+"),
        "removed_lines": marks.count(b"-"),
        "patch": render_unified(diff) if patch else None,
        "values": render_changes(diff) if patch else None,
    }


def _numbers(version: Version | None) -> dict[str, int]:
    return {} if version is None else {"number": version.number, "seq": version.seq}
