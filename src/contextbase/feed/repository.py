"""Reads and appends the feed's rows. Says what is stored, not who may see it: scopes filter above."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import asyncpg

from contextbase.audit.model import OperatorType
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import NotFound
from contextbase.feed.model import Author, ChangeKind, FeedChange, FeedCommit, FeedEvent, FeedHeads, NewEvent, SetAside
from contextbase.identity.model import PrincipalKind
from contextbase.ids import ContentHash, PrincipalId, ProjectId, Seq, TreePath

__all__ = ["FeedRepository"]

_SQL: Final = load_queries("contextbase.feed")
_DELETED: Final = "deleted"


class FeedRepository:
    async def heads(self, connection: Connection, project_id: ProjectId) -> FeedHeads:
        row = await connection.fetchrow(_SQL.heads, project_id)
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
                author=_author(row),
                operator_type=OperatorType(row["operator_type"]),
                message=row["message"],
                at=row["committed_at"],
                changes=tuple(changes[row["seq"]]),
                set_aside=tuple(set_aside[row["seq"]]),
            )
            for row in rows
        ]

    async def events(self, connection: Connection, heads: FeedHeads, after: int, limit: int) -> list[FeedEvent]:
        """The events after a number up to the heads, that were not pruned."""
        if after >= heads.event:
            return []
        rows = await connection.fetch(_SQL.events_between, heads.project_id, after, heads.event, limit)
        return [
            FeedEvent(
                number=row["number"],
                kind=row["kind"],
                author=_author(row) if row["principal_id"] else None,
                path=TreePath(row["path"]) if row["path"] else None,
                payload=json.loads(row["payload"]),
                at=row["created_at"],
            )
            for row in rows
        ]

    async def append_events(
        self, connection: Connection, project_id: ProjectId, events: Sequence[NewEvent]
    ) -> list[int]:
        """Number and store events in the caller's transaction; others who publish wait until it ends."""
        last = await connection.fetchval(_SQL.take_event_numbers, project_id, len(events))
        if last is None:
            raise NotFound(f"There is no project {project_id}.")
        numbers = list(range(last - len(events) + 1, last + 1))
        await connection.execute(
            _SQL.insert_events,
            project_id,
            numbers,
            [event.kind for event in events],
            [event.principal_id for event in events],
            [event.path for event in events],
            [json.dumps(event.payload) for event in events],
        )
        return numbers

    async def prune(self, connection: Connection, age: timedelta) -> int:
        """Remove events older than this; returns how many."""
        done = await connection.execute(_SQL.prune_events, age)
        return int(done.rpartition(" ")[2])


def _author(row: asyncpg.Record) -> Author:
    return Author(
        id=PrincipalId(row["principal_id"]), kind=PrincipalKind(row["principal_kind"]), name=row["principal_name"]
    )


def _change(row: asyncpg.Record) -> FeedChange:
    path, path_now = TreePath(row["path"]), TreePath(row["path_now"])
    if row["kind"] == _DELETED:
        return FeedChange(action=ChangeKind.DELETED, path=path, path_now=path_now)
    previous_path = None
    if row["kind_before"] is None or row["kind_before"] == _DELETED:
        action = ChangeKind.CREATED
    elif row["path_before"] != path:
        action, previous_path = ChangeKind.RENAMED, TreePath(row["path_before"])
    else:
        action = ChangeKind.CHANGED
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
