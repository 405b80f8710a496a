"""Files by name and by content, in a snapshot or a workspace."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToRead
from contextbase.interfaces.api.routes.workspaces import Named
from contextbase.search.cursor import LONGEST_CURSOR
from contextbase.search.model import MOST_CONTEXT, ContentPage, ContentQuery, NamePage, NameQuery
from contextbase.search.path_filter import PathFilter
from contextbase.search.pattern import LONGEST, TextPattern
from contextbase.wire.search import (
    ContentMatchPage,
    FileMatchView,
    LineMatchView,
    NameMatchPage,
    SkippedFileView,
)
from contextbase.wire.snapshot import LONGEST_REF

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["search"], responses=problem_answers(404, 409, 429))

At = Annotated[str, Query(max_length=LONGEST_REF, description="A snapshot; see /resolve. Not with a cursor.")]
Cursor = Annotated[str | None, Query(max_length=LONGEST_CURSOR)]
Limit = Annotated[int, Query(ge=1, le=1000)]


def path_filter(
    path: Annotated[str | None, Query(max_length=2048, description="A file, or a folder and all in it.")] = None,
    glob: Annotated[
        list[str] | None,
        Query(max_length=32, description="Such as *.py, docs/*.md or docs/; with ! before it, what to leave out."),
    ] = None,
) -> PathFilter:
    return PathFilter.parse(TreePath.parse(path) if path else None, glob or ())


Files = Annotated[PathFilter, Depends(path_filter)]


def content_query(
    *,
    pattern: Annotated[str, Query(min_length=1, max_length=LONGEST)],
    files: Files,
    regex: Annotated[bool, Query(description="The pattern is a regular expression, as RE2 reads it.")] = False,
    ignore_case: bool = False,
    whole_word: bool = False,
    context: Annotated[int, Query(ge=0, le=MOST_CONTEXT, description="Lines before and after each match.")] = 0,
    per_file: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The most matching lines of a file.")] = None,
) -> ContentQuery:
    wanted = TextPattern(text=pattern, is_expression=regex, ignore_case=ignore_case, whole_word=whole_word)
    return ContentQuery(pattern=wanted, files=files, context=context, per_file=per_file)


def name_query(
    files: Files,
    name: Annotated[
        str, Query(max_length=200, description="Words of the path, in any order, or letters of the file's name.")
    ] = "",
) -> NameQuery:
    return NameQuery(words=name, files=files)


Contents = Annotated[ContentQuery, Depends(content_query)]
Names = Annotated[NameQuery, Depends(name_query)]


@router.get("/search/contents")
async def contents(
    *,
    project_id: ProjectToRead,
    query: Contents,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    at: At = "",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> ContentMatchPage:
    """Lines of files that match, as grep finds them. A page may end early: follow its cursor until there is none."""
    seq: Seq | None = None
    if at and cursor is None:
        seq = await services.snapshots.find(caller, project_id, at)
    page = await services.search.contents(caller, project_id, query, seq=seq, cursor=cursor, limit=limit)
    return _content_page(project_id, page)


@router.get("/search/names")
async def names(
    *,
    project_id: ProjectToRead,
    query: Names,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    at: At = "",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> NameMatchPage:
    """Files and links by name or by patterns of paths."""
    seq: Seq | None = None
    if at and cursor is None:
        seq = await services.snapshots.find(caller, project_id, at)
    page = await services.search.names(caller, project_id, query, seq=seq, cursor=cursor, limit=limit)
    return _name_page(project_id, page)


@router.get("/workspaces/{workspace}/search/contents", responses=problem_answers(421))
async def workspace_contents(
    *,
    named: Named,
    query: Contents,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> ContentMatchPage:
    """Likewise, in the folder of an open workspace as it is now, without what is ignored there."""
    page = await agents.workspace_search.contents(caller, named, query, cursor=cursor, limit=limit)
    return _content_page(named.project_id, page)


@router.get("/workspaces/{workspace}/search/names", responses=problem_answers(421))
async def workspace_names(
    *,
    named: Named,
    query: Names,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> NameMatchPage:
    """Likewise, of the files and links in it."""
    page = await agents.workspace_search.names(caller, named, query, cursor=cursor, limit=limit)
    return _name_page(named.project_id, page)


def _content_page(project_id: ProjectId, page: ContentPage) -> ContentMatchPage:
    return ContentMatchPage(
        project_id=project_id,
        seq=page.seq,
        files=[
            FileMatchView(
                path=file.path,
                lines=[
                    LineMatchView(
                        number=line.number,
                        text=line.text,
                        ranges=None if line.ranges is None else list(line.ranges),
                        is_cut=line.is_cut,
                    )
                    for line in file.lines
                ],
            )
            for file in page.files
        ],
        skipped=[SkippedFileView(path=skipped.path, reason=skipped.reason) for skipped in page.skipped],
        stopped_by=page.stopped_by,
        cursor=page.cursor,
    )


def _name_page(project_id: ProjectId, page: NamePage) -> NameMatchPage:
    return NameMatchPage(project_id=project_id, seq=page.seq, paths=list(page.paths), cursor=page.cursor)
