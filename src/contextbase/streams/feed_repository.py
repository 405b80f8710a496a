"""Reads a project's commits and events. Says what is stored, not who may see it: viewpoints filter above."""

from collections import defaultdict
from typing import Final

import asyncpg

from contextbase.audit.model import WayIn
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import NotFound
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.streams.feed_model import FeedChange, FeedCommit, FeedHeads, FileChangeKind, SetAside
from contextbase.streams.model import Scope, StreamEvent
from contextbase.streams.repository import StreamRepository, author_of

__all__ = ["FeedRepository"]

_SQL: Final = load_queries("contextbase.streams")
_DELETED: Final = "deleted"


class FeedRepository:
    def __init__(self) -> None:
        self._streams = StreamRepository()

    async def heads(self, connection: Connection, project_id: ProjectId) -> FeedHeads:
        row = await connection.fetchrow(_SQL.feed_heads, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return FeedHeads(
            project_id=project_id,
            epoch=row["epoch"],
            seq=Seq(row["head"]),
            event=row["event_number"],
            policy_version=row["policy_version"],
        )

    async def commits(self, connection: Connection, heads: FeedHeads, after: Seq, limit: int) -> list[FeedCommit]:
        """The commits after a seq up to the heads, with all they did and all that was set aside."""
        if after >= heads.seq:
            return []
        rows = await connection.fetch(_SQL.commits_between, heads.project_id, after, heads.seq, limit)
        if not rows:
            return []
        changes: defaultdict[Seq, list[FeedChange]] = defaultdict(list)
        for row in await connection.fetch(_SQL.changes_between, heads.project_id, after, rows[-1]["seq"]):
            changes[row["seq"]].append(_change(row))
        set_aside: defaultdict[Seq, list[SetAside]] = defaultdict(list)
        for row in await connection.fetch(_SQL.set_aside_between, heads.project_id, after, rows[-1]["seq"]):
            set_aside[row["seq"]].append(_set_aside(row))
        return [
            FeedCommit(
                seq=Seq(row["seq"]),
                author=author_of(row),
                way_in=WayIn(row["operator_type"]),
                message=row["message"],
                at=row["committed_at"],
                changes=tuple(changes[row["seq"]]),
                set_aside=tuple(set_aside[row["seq"]]),
            )
            for row in rows
        ]

    async def events(self, connection: Connection, heads: FeedHeads, after: int, limit: int) -> list[StreamEvent]:
        """The events after a number up to the heads that were not pruned."""
        scope = Scope.project(heads.project_id)
        return await self._streams.events(connection, scope, after=after, until=heads.event, limit=limit)


def _change(row: asyncpg.Record) -> FeedChange:
    path, path_now = TreePath(row["path"]), TreePath(row["path_now"])
    if row["kind"] == _DELETED:
        return FeedChange(action=FileChangeKind.DELETED, path=path, path_now=path_now)
    previous_path = None
    if row["kind_before"] is None or row["kind_before"] == _DELETED:
        action = FileChangeKind.CREATED
    elif row["path_before"] != path:
        action, previous_path = FileChangeKind.RENAMED, TreePath(row["path_before"])
    else:
        action = FileChangeKind.CHANGED
    return FeedChange(
        action=action,
        path=path,
        previous_path=previous_path,
        kind=row["kind"],
        content_hash=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
        size=row["size"],
        executable=row["executable"],
        path_now=path_now,
    )


def _set_aside(row: asyncpg.Record) -> SetAside:
    return SetAside(
        reason=row["reason"],
        path=TreePath(row["path"]),
        side_version_id=row["id"],
        review_id=row["review_id"],
        path_now=TreePath(row["path_now"]),
    )
