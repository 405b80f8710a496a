"""Commits and events as their wire models."""

from typing import Any

from contextbase.streams.feed_model import FeedChange, FeedCommit
from contextbase.streams.model import StreamEvent
from contextbase.vocabulary import Kind
from contextbase.wire.event import ScopedCommitItem, ScopedEventItem
from contextbase.wire.feed import CommitItem, EventAuthorView, EventBodyView, EventItem, FeedChangeView, SetAsideView

__all__ = ["event_view", "item_view", "scoped_item_view"]


def item_view(body: FeedCommit | StreamEvent) -> CommitItem | EventItem:
    return CommitItem(**_commit_fields(body)) if isinstance(body, FeedCommit) else event_view(body)


def event_view(body: StreamEvent) -> EventItem:
    return EventItem(**_event_fields(body))


def scoped_item_view(scope: str, body: FeedCommit | StreamEvent) -> ScopedCommitItem | ScopedEventItem:
    if isinstance(body, FeedCommit):
        return ScopedCommitItem(scope=scope, **_commit_fields(body))
    return ScopedEventItem(scope=scope, **_event_fields(body))


def _commit_fields(body: FeedCommit) -> dict[str, Any]:
    return {
        "seq": body.seq,
        "at": body.at,
        "author": EventAuthorView.model_validate(body.author),
        "operator_type": body.way_in,
        "message": body.message,
        "changes": [_change_view(change) for change in body.changes],
        "set_aside": [SetAsideView.model_validate(aside) for aside in body.set_aside],
        "left_off": body.left_off,
    }


def _event_fields(body: StreamEvent) -> dict[str, Any]:
    return {
        "number": body.number,
        "kind": body.kind,
        "at": body.at,
        "author": None if body.author is None else EventAuthorView.model_validate(body.author),
        "path": body.path,
        "payload": dict(body.payload),
        "body": None if body.body is None else EventBodyView(hash=str(body.body.hash), size=body.body.size),
    }


def _change_view(change: FeedChange) -> FeedChangeView:
    return FeedChangeView(
        action=change.action,
        path=change.path,
        previous_path=change.previous_path,
        kind=Kind(change.kind) if change.kind else None,
        hash=None if change.content_hash is None else str(change.content_hash),
        size=change.size,
        executable=change.executable,
    )
