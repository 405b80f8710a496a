"""Waiting for what others commit."""

import asyncio
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import InvalidInput
from contextbase.gate.service import Gate
from contextbase.identity.model import Action
from contextbase.ids import Seq
from contextbase.streams.feed_model import Cursor, FeedCommit, FeedPage, Viewpoint
from contextbase.streams.project_feed import ProjectFeed
from contextbase.tools.arguments import ArgumentKind, Parameter
from contextbase.tools.model import LONGEST_ANSWER, Tool, ToolCall, ToolPlace, ToolResult
from contextbase.tools.wording import fitting, listed

__all__ = ["ChangeTools"]

_DEFAULT_SECONDS: Final = 30
_LONGEST_SECONDS: Final = 45
"""Agent programs give up on a call after a minute."""
_MOST_COMMITS: Final = 50
_MOST_PATHS: Final = 8


class ChangeTools:
    def __init__(self, *, database: Database, gate: Gate, feed: ProjectFeed) -> None:
        self._database = database
        self._gate = gate
        self._feed = feed

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="wait_for_changes",
                description="Wait until somebody commits to the project, and tell what changed.",
                parameters=(
                    Parameter(
                        name="afterSeq",
                        kind=ArgumentKind.NUMBER,
                        description="The last commit you know. Default: from now on.",
                        least=0,
                        most=2**62,
                    ),
                    Parameter(
                        name="timeout",
                        kind=ArgumentKind.NUMBER,
                        description="Seconds.",
                        least=0,
                        most=_LONGEST_SECONDS,
                    ),
                ),
                run=self.wait_for_changes,
            ),
        )

    async def wait_for_changes(self, call: ToolCall) -> ToolResult:
        place, clock = call.place, asyncio.get_running_loop()
        place.acting.require(Action.READ, place.project_id)
        deadline = clock.time() + call.arguments.number("timeout", _DEFAULT_SECONDS)
        heads = await self._feed.heads(place.project_id)
        seq = call.arguments.number("afterSeq", heads.seq)
        if seq > heads.seq:
            raise InvalidInput(f"The project's last commit is {heads.seq}: afterSeq={seq} is after it.")
        cursor = Cursor(epoch=heads.epoch, seq=Seq(seq), event=heads.event)  # the commits alone
        page = await self._feed.read(await self._viewpoint(place), heads, cursor, limit=_MOST_COMMITS)
        async with self._feed.follow(heads) as follower:
            while not _commits(page) and not follower.ended and clock.time() < deadline:
                await follower.wait(page.cursor, deadline - clock.time())
                page = await follower.read(await self._viewpoint(place), page.cursor, limit=_MOST_COMMITS)
        commits = _commits(page)
        lines, _ = fitting((_line(commit, place) for commit in commits), LONGEST_ANSWER)
        shown = commits[: len(lines)]
        last = shown[-1].seq if shown else page.cursor.seq
        data = {"seq": last, "commits": [_data(commit, place) for commit in shown]}
        text = "\n".join(lines) or "Nobody committed anything."
        return ToolResult(text=text, note=f"Go on with afterSeq={last}.", data=data)

    async def _viewpoint(self, place: ToolPlace) -> Viewpoint:
        """What the caller may see now: read after the heads, so that it is never older than what it filters."""
        async with self._database.connection() as connection:
            authority = await self._gate.authority(connection, place.acting, place.project_id)
            return Viewpoint(authority=authority, below=place.paths.folder)


def _commits(page: FeedPage) -> list[FeedCommit]:
    return [item.body for item in page.items if isinstance(item.body, FeedCommit)]


def _line(commit: FeedCommit, place: ToolPlace) -> str:
    paths = listed([f"{change.action} {place.paths.named(change.path)}" for change in commit.changes], _MOST_PATHS)
    return f"{commit.seq}  {commit.author.principal}  {paths}"


def _data(commit: FeedCommit, place: ToolPlace) -> dict[str, object]:
    return {
        "seq": commit.seq,
        "by": commit.author.principal,
        "changes": [
            {"action": change.action.value, "path": place.paths.named(change.path)}
            for change in commit.changes[:_MOST_COMMITS]
        ],
    }
