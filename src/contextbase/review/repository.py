"""Review items in PostgreSQL. Says what is stored, not who may see it: the services filter above."""

import base64
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.gate.answers import conflict_from_dict, conflict_to_dict
from contextbase.gate.model import ReviewState
from contextbase.identity.model import Principal
from contextbase.ids import ContentHash, NodeId, PrincipalId, ProjectId, Seq, TreePath
from contextbase.merge import MergeConflict
from contextbase.review.model import Claim, Closed, Comment, ItemFilter, ReviewItem, Suggestion
from contextbase.storage.model import Kind, Version
from contextbase.storage.tree import version_of_row

__all__ = ["ReviewRepository"]

_SQL: Final = load_queries("contextbase.review")


class ReviewRepository:
    async def hold_project(self, connection: Connection, project_id: ProjectId) -> None:
        """Before anything else, in a transaction that closes an item or adds a comment."""
        await connection.execute(_SQL.hold_project, project_id)

    async def page(
        self, connection: Connection, project_id: ProjectId, wanted: ItemFilter, *, limit: int
    ) -> list[ReviewItem]:
        """Items newest first."""
        rows = await connection.fetch(
            _SQL.items,
            project_id,
            None if wanted.state is None else str(wanted.state),
            wanted.path,
            None if wanted.authors is None else list(wanted.authors),
            None if wanted.claimed_by is None else list(wanted.claimed_by),
            wanted.before,
            limit,
            None,
        )
        return [_item(row) for row in rows]

    async def one(self, connection: Connection, project_id: ProjectId, review_id: UUID) -> ReviewItem | None:
        row = await connection.fetchrow(_SQL.items, project_id, None, None, None, None, None, 1, review_id)
        return None if row is None else _item(row)

    async def entries_at(
        self, connection: Connection, project_id: ProjectId, paths: Iterable[TreePath], seq: Seq
    ) -> dict[TreePath, Version]:
        rows = await connection.fetch(_SQL.entries_at, project_id, list(paths), seq)
        return {version.path: version for version in map(version_of_row, rows)}

    async def is_touched(self, connection: Connection, project_id: ProjectId, item: ReviewItem) -> bool:
        """Whether anything happened to what the item is about since it was looked at."""
        paths = [item.path, item.base_path]
        return bool(await connection.fetchval(_SQL.is_touched, project_id, list(item.nodes), paths, item.checked_seq))

    async def message(self, connection: Connection, project_id: ProjectId, seq: Seq) -> str:
        return str(await connection.fetchval(_SQL.commit_message, project_id, seq))

    async def comments(self, connection: Connection, project_id: ProjectId, review_id: UUID) -> list[Comment]:
        return [
            Comment(number=row["number"], author=Principal.of_row(row, ""), text=row["text"], at=row["created_at"])
            for row in await connection.fetch(_SQL.comments, project_id, review_id)
        ]

    async def add_comment(
        self, connection: Connection, project_id: ProjectId, review_id: UUID, author: Principal, text: str
    ) -> Comment:
        await connection.execute(_SQL.lock_item, project_id, review_id)
        [row] = await connection.fetch(_SQL.add_comment, project_id, review_id, author.id, text)
        return Comment(number=row["number"], author=author, text=text, at=row["created_at"])

    async def claim(
        self, connection: Connection, project_id: ProjectId, review_id: UUID, who: PrincipalId, *, take_over: bool
    ) -> bool:
        """False: it is somebody else's, or not open."""
        return bool(await connection.fetchval(_SQL.claim, project_id, review_id, who, take_over))

    async def release(self, connection: Connection, project_id: ProjectId, review_id: UUID, who: PrincipalId) -> bool:
        """False: it was not theirs, or is not open."""
        return bool(await connection.fetchval(_SQL.release, project_id, review_id, who))

    async def refresh(
        self,
        connection: Connection,
        project_id: ProjectId,
        review_id: UUID,
        seq: Seq,
        *,
        ours_number: int | None,
        conflicts: Sequence[MergeConflict],
        reason: str,
        keeps_suggestion: bool,
    ) -> None:
        stored = json.dumps([conflict_to_dict(conflict) for conflict in conflicts])
        await connection.execute(
            _SQL.refresh, project_id, review_id, seq, ours_number, stored, keeps_suggestion, reason
        )

    async def mark_checked(self, connection: Connection, project_id: ProjectId, review_id: UUID, seq: Seq) -> None:
        await connection.execute(_SQL.mark_checked, project_id, review_id, seq)

    async def put_suggestion(
        self, connection: Connection, project_id: ProjectId, review_id: UUID, suggestion: Suggestion
    ) -> None:
        await connection.execute(_SQL.put_suggestion, project_id, review_id, _suggestion_to_json(suggestion))

    async def stale(self, connection: Connection, limit: int) -> list[tuple[ProjectId, UUID, Seq]]:
        """Open items whose project has moved on since they were looked at, and its head."""
        rows = await connection.fetch(_SQL.stale_items, limit)
        return [(ProjectId(row["project_id"]), row["id"], Seq(row["head"])) for row in rows]

    async def unasked(self, connection: Connection, after: UUID, limit: int) -> list[tuple[ProjectId, UUID]]:
        """Open items with conflicts that no resolver was asked about, in order of age, after one."""
        rows = await connection.fetch(_SQL.unasked_items, after, limit)
        return [(ProjectId(row["project_id"]), row["id"]) for row in rows]


def _item(row: asyncpg.Record) -> ReviewItem:
    claimed, closed = row["claimed_at"], row["closed_at"]
    now = [TreePath.stored(row[name]) for name in ("node_now", "base_node_now") if row[name] is not None]
    return _ITEM(
        row,
        author=Principal.of_row(row, "author_"),
        side_id=row["side_version_id"],
        claim=None if claimed is None else Claim(by=Principal.of_row(row, "claimer_"), at=claimed),
        closed=(
            None if closed is None else Closed(by=Principal.of_row(row, "closer_"), at=closed, seq=row["closed_seq"])
        ),
        nodes=tuple(NodeId(row[name]) for name in ("node_id", "base_node_id") if row[name] is not None),
        nodes_now=tuple(now),
    )


def _suggestion_to_json(suggestion: Suggestion) -> str:
    texts = suggestion.texts
    return json.dumps(
        {
            "by": suggestion.by,
            "at": suggestion.at.isoformat(),
            "about": suggestion.about,
            "texts": None if texts is None else [base64.b64encode(text).decode() for text in texts],
            "problem": suggestion.problem,
        }
    )


def _suggestion_from_json(stored: str) -> Suggestion:
    fields = json.loads(stored)
    texts = fields["texts"]
    return Suggestion(
        by=fields["by"],
        at=datetime.fromisoformat(fields["at"]),
        about=fields["about"],
        texts=None if texts is None else tuple(map(base64.b64decode, texts)),
        problem=fields["problem"],
    )


_ITEM: Final = RowShape(
    ReviewItem,
    path=TreePath.stored,
    base_path=TreePath.stored,
    state=ReviewState,
    kind=Kind,
    content_hash=ContentHash,
    conflicts=lambda stored: tuple(map(conflict_from_dict, json.loads(stored))),
    suggestion=_suggestion_from_json,
)
