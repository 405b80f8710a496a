"""One caller's reading of a project's feed: who reads is checked all the time, and what they may see whenever the
policy moves and every few seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import Request

from contextbase.bootstrap import CoreServices
from contextbase.errors import DatabaseUnavailable
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, TreePath
from contextbase.interfaces.api.authentication import authenticate
from contextbase.interfaces.api.watched_caller import CHECKED_SECONDS
from contextbase.streams.feed_model import Cursor, FeedHeads, FeedPage, Viewpoint
from contextbase.streams.project_feed import FeedFollower

__all__ = ["AUTHORISED_SECONDS", "FeedConnection"]

AUTHORISED_SECONDS: Final = 15.0
"""How long a change of groups may go unnoticed by a reader that waits."""


class FeedConnection:
    """Open it, then read and wait in turns."""

    def __init__(self, request: Request, services: CoreServices, project_id: ProjectId, below: TreePath | None) -> None:
        self._clock = asyncio.get_running_loop()
        self._request = request
        self._services = services
        self._project_id = project_id
        self._below = below
        self._viewpoint: Viewpoint | None = None
        self._policy_version = -1
        self._authorised_at = 0.0
        self._checked_at = 0.0

    async def start(self, after: str | None) -> tuple[FeedHeads, Cursor]:
        """The heads now, and where the reader wants to start."""
        heads = await self._services.feed.heads(self._project_id)
        cursor = self._services.feed.cursor(heads, after)
        await self._authorise(heads.policy_version)
        return heads, cursor

    async def read_now(self, heads: FeedHeads, after: Cursor, limit: int) -> FeedPage:
        """What has landed already, from the database itself."""
        return await self._services.feed.read(
            await self._current_viewpoint(heads.policy_version), heads, after, limit=limit
        )

    @asynccontextmanager
    async def following(self, heads: FeedHeads) -> AsyncIterator[FeedFollower]:
        async with self._services.feed.follow(heads) as follower:
            yield follower

    async def read(self, follower: FeedFollower, after: Cursor, limit: int) -> FeedPage:
        """What has landed, from the window that all readers in this process share."""
        return await follower.read(await self._current_viewpoint(follower.policy_version), after, limit=limit)

    async def _current_viewpoint(self, policy_version: int) -> Viewpoint:
        if self._viewpoint is None or policy_version > self._policy_version:
            return await self._authorise(policy_version)
        now = self._clock.time()
        try:
            if now - self._authorised_at > AUTHORISED_SECONDS:
                return await self._authorise(policy_version)
            if now - self._checked_at > CHECKED_SECONDS:
                await self._checked()
        except DatabaseUnavailable:
            pass  # nothing new can land meanwhile
        return self._viewpoint

    async def _checked(self) -> Caller:
        """Raises when they may not read any more."""
        caller = await authenticate(self._request)
        caller.require(Action.READ, self._project_id)
        self._checked_at = self._clock.time()
        return caller

    async def _authorise(self, policy_version: int) -> Viewpoint:
        """Who reads, and what they may see, as of now; raises when they may not read any more."""
        caller = await self._checked()
        async with self._services.database.connection() as connection:
            authority = await self._services.gate.authority(connection, caller, self._project_id)
        self._viewpoint = Viewpoint(authority=authority, below=self._below)
        self._policy_version = policy_version
        self._authorised_at = self._clock.time()
        return self._viewpoint
