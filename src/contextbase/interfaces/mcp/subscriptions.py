"""Telling clients of 2026-07-28 and later what changed: one request is one stream, as one caller may see it.

Earlier clients get no notifications: those need a session, and a session would outlive the token it came with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    event_to_notification,
)

from contextbase.bootstrap import Services
from contextbase.errors import ContextbaseError
from contextbase.ids import TreePath
from contextbase.interfaces.api.feed_reader import FeedConnection
from contextbase.interfaces.mcp.request import request_of
from contextbase.interfaces.mcp.resources import uri_of
from contextbase.streams.feed_model import FeedCommit, FeedPage, FileChangeKind

__all__ = ["Subscriptions"]

_MOST_AT_ONCE: Final = 1000
_WAIT_SECONDS: Final = 10.0
_MOST_STREAMS: Final = 1000
_MOST_FILES: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Change:
    path: TreePath  # as the caller's place names it
    action: FileChangeKind


class Subscriptions:
    """Serves `subscriptions/listen`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open = 0

    async def __call__(
        self, ctx: Any, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        wanted = params.notifications
        files = frozenset(wanted.resource_subscriptions or ())
        if len(files) > _MOST_FILES or self._open >= _MOST_STREAMS:
            raise MCPError(types.INVALID_PARAMS, "Too many subscriptions. Watch fewer files, or use wait_for_changes.")
        self._open += 1
        try:
            return await self._followed(ctx, wanted, files)
        except ContextbaseError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from error
        finally:
            self._open -= 1

    async def _followed(
        self, ctx: Any, wanted: types.SubscriptionFilter, files: frozenset[str]
    ) -> types.SubscriptionsListenResult:
        core = self._services.core
        project_id, project = await self._services.agents.tools.project(request_of(ctx.request))
        connection = FeedConnection(ctx.request, core, project_id, None)
        heads, cursor = await connection.start(None)
        meta = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        honoured = types.SubscriptionFilter(
            resources_list_changed=wanted.resources_list_changed or None,
            tools_list_changed=wanted.tools_list_changed or None,  # they never do while a token lives
            resource_subscriptions=sorted(files) or None,
        )
        await ctx.session.send_notification(
            types.SubscriptionsAcknowledgedNotification(
                params=types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
            ),
            related_request_id=ctx.request_id,
        )
        async with connection.following(heads) as follower:
            while not follower.ended:
                await follower.wait(cursor, _WAIT_SECONDS)
                page = await connection.read(follower, cursor, _MOST_AT_ONCE)
                cursor = page.cursor
                changes = await self._changes(ctx, page)
                for event in _events(changes, project, files, lists=bool(wanted.resources_list_changed)):
                    await ctx.session.send_notification(
                        event_to_notification(event, meta), related_request_id=ctx.request_id
                    )
        return types.SubscriptionsListenResult(_meta=meta)

    async def _changes(self, ctx: Any, page: FeedPage) -> list[_Change]:
        """What was committed in the caller's place, by the names that its resources have."""
        changes = [change for item in page.items if isinstance(item.body, FeedCommit) for change in item.body.changes]
        if not changes:
            return []
        paths = await self._services.agents.tools.paths(request_of(ctx.request))
        return [
            _Change(path=named, action=change.action)
            for change in changes
            for path in (change.path, change.previous_path)
            if path and (named := paths.in_folder(TreePath.stored(path))) is not None
        ]


def _events(changes: Sequence[_Change], project: str, files: frozenset[str], *, lists: bool) -> Iterator[ServerEvent]:
    """Each once: they say that something changed, not how."""
    for uri in sorted({uri_of(project, change.path) for change in changes} & files):
        yield ResourceUpdated(uri)
    if lists and any(change.action is not FileChangeKind.CHANGED for change in changes):
        yield ResourcesListChanged()
