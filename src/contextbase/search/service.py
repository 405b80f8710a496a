"""Search as its callers know it: contents and names, in a snapshot or in a workspace.

The order is always the same: which blobs may match, which files with them the caller may see, and only then what they
hold. So neither an answer nor its cursor depends on anything hidden.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from heapq import nsmallest
from typing import Final
from uuid import UUID

from contextbase.compute.ports import Compute
from contextbase.db.database import Database
from contextbase.identity.levels import Level, PathAuthority
from contextbase.identity.model import Caller
from contextbase.ids import PrincipalId, ProjectId, Seq, TreePath
from contextbase.reads.service import Reads
from contextbase.reads.snapshot_view import VisibleSnapshot
from contextbase.search.blob_contents import BlobContents
from contextbase.search.content_search import ContentSearch
from contextbase.search.cursor import SearchCursor
from contextbase.search.index import candidates_for
from contextbase.search.model import ContentPage, ContentQuery, NamePage, NameQuery
from contextbase.search.name_search import NameRanking, Rank
from contextbase.search.path_lists import PathLists
from contextbase.search.ports import FolderReader
from contextbase.search.snapshot_files import SnapshotFiles, visible_paths
from contextbase.search.workspace_files import SearchedWorkspace

__all__ = ["SearchService"]

_EVERYTHING: Final = PathAuthority(
    rules=(), principal_id=PrincipalId(UUID(int=0)), groups=frozenset(), default=Level.READ
)


class SearchService:
    def __init__(
        self,
        *,
        database: Database,
        reads: Reads,
        contents: BlobContents,
        compute: Compute,
    ) -> None:
        self._database = database
        self._reads = reads
        self._contents = contents
        self._compute = compute
        self._paths = PathLists()

    async def contents(
        self,
        caller: Caller,
        project_id: ProjectId,
        query: ContentQuery,
        *,
        seq: Seq | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> ContentPage:
        """Lines of files that match, in a snapshot (None: the head) or, with a cursor, in the one that it names.

        `limit` counts lines that match and files that cannot be searched. A page may end before that, and name a next
        one: see `StopReason`. Raises `InvalidInput`, `NotFound`, `CursorOutdated`, and `TooBusy` for who asks for too
        much at once."""
        start = None if cursor is None else SearchCursor.read(cursor, query)
        view = await self._view(caller, project_id, seq, start)
        start = start or SearchCursor(epoch=view.epoch, seq=view.seq)
        source = await self._files(view, query)
        search = ContentSearch(source, query, start, limit=limit, compute=self._compute)
        return await search.run(caller.principal.id)

    async def names(
        self,
        caller: Caller,
        project_id: ProjectId,
        query: NameQuery,
        *,
        seq: Seq | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> NamePage:
        """Files and links by name, likewise."""
        start = None if cursor is None else SearchCursor.read(cursor, query)
        view = await self._view(caller, project_id, seq, start)
        start = start or SearchCursor(epoch=view.epoch, seq=view.seq)
        return await _ranked(self._portions(view), query, start, limit)

    async def contents_with_folder(
        self,
        caller: Caller,
        project_id: ProjectId,
        folder: FolderReader,
        query: ContentQuery,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> ContentPage:
        """As `contents`, in a workspace that the caller may look into: what its folder has now is what is searched.
        What agents change between two pages is found where it stands then."""
        start = SearchCursor(epoch=folder.epoch, seq=folder.seq)
        start = start if cursor is None else SearchCursor.read(cursor, query)
        within = replace(query, files=query.files.within(folder.folder))
        snapshot = await self._files(_whole(project_id, folder), within)
        source = SearchedWorkspace(snapshot=snapshot, folder=folder, files=query.files)
        search = ContentSearch(source, query, start, limit=limit, compute=self._compute)
        return await search.run(caller.principal.id)

    async def names_with_folder(
        self,
        project_id: ProjectId,
        folder: FolderReader,
        query: NameQuery,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> NamePage:
        """As `names`, likewise."""
        start = SearchCursor(epoch=folder.epoch, seq=folder.seq)
        start = start if cursor is None else SearchCursor.read(cursor, query)
        portions = _with_folder(self._portions(_whole(project_id, folder)), folder)
        return await _ranked(portions, query, start, limit)

    async def _view(
        self, caller: Caller, project_id: ProjectId, seq: Seq | None, start: SearchCursor | None
    ) -> VisibleSnapshot:
        async with self._database.connection() as connection:
            if start is None:
                return await self._reads.opened(connection, caller, project_id, seq)
            return await self._reads.opened(connection, caller, project_id, start.seq, start.epoch)

    async def _files(self, view: VisibleSnapshot, query: ContentQuery) -> SnapshotFiles:
        async with self._database.connection() as connection:
            candidates = await candidates_for(connection, view.project_id, query.pattern.query)
        return SnapshotFiles(
            database=self._database, contents=self._contents, view=view, candidates=candidates, files=query.files
        )

    async def _portions(self, view: VisibleSnapshot) -> AsyncIterator[list[TreePath]]:
        """All paths that the caller may see; remembered, unless they are too many."""
        key = (view.key, view.authority.sight)
        if (known := self._paths.find(key)) is not None:
            for portion in known:
                yield portion
                await asyncio.sleep(0)
            return
        read: list[list[TreePath]] = []
        count = 0
        async for portion in visible_paths(self._database, view):
            count += len(portion)
            read = [*read, portion] if count <= self._paths.most else []
            yield portion
        if count <= self._paths.most:
            self._paths.keep(key, read)


def _whole(project_id: ProjectId, folder: FolderReader) -> VisibleSnapshot:
    """The snapshot under a workspace. What of it the agent was given, its folder says."""
    return VisibleSnapshot(
        project_id=project_id,
        epoch=folder.epoch,
        seq=folder.seq,
        policy_version=0,
        authority=_EVERYTHING,
        only=None,
    )


async def _with_folder(portions: AsyncIterator[list[TreePath]], folder: FolderReader) -> AsyncIterator[list[TreePath]]:
    async for portion in portions:
        yield [path for place in portion if (path := folder.shown_at(place)) is not None]
    yield [*(file.path for file in folder.changed), *folder.links]


async def _ranked(
    portions: AsyncIterator[list[TreePath]], query: NameQuery, start: SearchCursor, limit: int
) -> NamePage:
    ranking = NameRanking(query)
    after = ranking.rank(start.path) if start.path else None
    best: list[Rank] = []
    async for portion in portions:
        best = nsmallest(limit + 1, best + ranking.best(portion, after=after, count=limit + 1))
    page = [TreePath.stored(path) for _, _, path in best[:limit]]
    following = SearchCursor(epoch=start.epoch, seq=start.seq, path=page[-1]) if len(best) > limit else None
    return NamePage(
        epoch=start.epoch,
        seq=start.seq,
        paths=tuple(page),
        cursor=None if following is None else following.written(query),
    )
