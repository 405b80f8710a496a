"""Private folders of agents, as a part of the clients: `client.workspaces`."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

from contextbase.errors import HeldElsewhere, InvalidInput
from contextbase.sdk.arguments import checked, documented_like
from contextbase.sdk.connection import Body, Connection
from contextbase.sdk.portal import Portal
from contextbase.wire.workspace import (
    ConflictsInName,
    SharedFolderView,
    WorkspaceCommit,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceCreate,
    WorkspaceDiffPage,
    WorkspacePage,
    WorkspaceStateName,
    WorkspaceStatusView,
    WorkspaceView,
)

__all__ = ["AsyncWorkspaces", "OpenWorkspace", "Workspaces"]

_WORKSPACE: Final = "/api/v1/workspace"
_LONGEST_SECONDS: Final = 900.0  # what an agent left may be much to read, store and merge


@dataclass(kw_only=True, slots=True)
class OpenWorkspace:
    """A workspace for the time of a block."""

    path: Path
    view: WorkspaceView
    completed: WorkspaceCompleteView | None = None
    """What became of the work; None until the block has ended."""

    def say_left_open(self, error: BaseException) -> None:
        """Note on an exception that the work is kept, and where."""
        error.add_note(
            f"The workspace of {self.view.agent_id} is left open with the work in it, at {self.path}: "
            "go on there, then complete or abandon it."
        )


class AsyncWorkspaces:
    """Private folders on the server's machine. `agent` is whose workspace is meant (such as agent:indexer; None: your
    own; another's needs 'admin'). `project` may be left out if the agent has one workspace only. Methods raise
    `NotFound` if the agent has no workspace there, and `HeldElsewhere` if another server has it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    async def create(self, project: str, *, agent: str | None = None, at: str | int | None = None) -> WorkspaceView:
        """Create a folder on a snapshot of the project (`at`: a seq, a ref such as head~3, or a tag; None: the head).
        An agent that has one there already gets that one; raises `Conflict` if it is on another snapshot than `at`."""
        body = WorkspaceCreate(project_id=project, agent_id=agent, base_snapshot_id=at)
        return await self._connection.retried(
            lambda: self._connection.call(
                WorkspaceView, "POST", f"{_WORKSPACE}/create", body, read_seconds=_LONGEST_SECONDS
            )
        )

    @checked
    async def get(self, project: str, *, agent: str | None = None) -> WorkspaceView:
        """The agent's workspace. After a crash of the server or a reboot the folder is there again."""
        return await self._read(WorkspaceView, f"{_segment(project)}/path", agent_id=agent)

    @checked
    async def get_shared_folder(self, project: str) -> SharedFolderView:
        """A read-only folder that follows the project's head, shared by all who only read."""
        return await self._read(SharedFolderView, f"{_segment(project)}/view")

    @checked
    async def status(self, project: str | None = None, *, agent: str | None = None) -> WorkspaceStatusView:
        """What is not committed yet, what cannot be, and what is ignored."""
        return await self._read(WorkspaceStatusView, f"{_segment(agent or 'me')}/status", project_id=project)

    @checked
    async def diff(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        path: str | None = None,
        after: str = "",
        limit: int = 100,
        patch: bool = False,
    ) -> WorkspaceDiffPage:
        """What differs and is not committed yet, by path; with `patch` also as text. Pass the page's `next_after` as
        `after` for the next page."""
        route = f"{_segment(agent or 'me')}/diff"
        return await self._read(
            WorkspaceDiffPage, route, project_id=project, path=path, after=after, limit=limit, patch=patch
        )

    @checked
    async def commit(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        message: str = "",
        run: str | None = None,
        conflicts_in: ConflictsInName = "review",
        allow: Sequence[str] = (),
    ) -> WorkspaceCommitView:
        """Commit what changed; the agent goes on in its folder, with the merges in it. Refused changes are a part of
        the answer. `allow`: paths or patterns of files that may be shared though they look like credentials; others of
        those are held back, and in `reported`."""
        body = WorkspaceCommit(message=message, run=run, conflicts_in=conflicts_in, allow=[*allow])
        return await self._send(WorkspaceCommitView, f"{_segment(agent or 'me')}/commit", body, project_id=project)

    @checked
    async def complete(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        message: str = "",
        run: str | None = None,
        discard: bool = False,
        allow: Sequence[str] = (),
    ) -> WorkspaceCompleteView:
        """Commit, then remove the folder. One that holds what could not be committed stays (`removed` is False), unless
        you `discard` that. `allow`: as for `commit`."""
        body = WorkspaceCommit(message=message, run=run, allow=[*allow])
        route = f"{_segment(agent or 'me')}/complete"
        return await self._send(WorkspaceCompleteView, route, body, project_id=project, discard=discard)

    @checked
    async def abandon(self, project: str | None = None, *, agent: str | None = None) -> WorkspaceView:
        """Remove the folder and what is in it, for good."""
        return await self._connection.call(
            WorkspaceView, "POST", f"{_WORKSPACE}/{_segment(agent or 'me')}/abandon", project_id=project
        )

    @checked
    async def list(
        self,
        project: str | None = None,
        *,
        state: WorkspaceStateName | None = "open",
        before: UUID | None = None,
        limit: int = 100,
    ) -> WorkspacePage:
        """Workspaces, newest first: everybody's for 'admin', else your own; in a state (None: any). Pass the page's
        `next_before` for the next page."""
        return await self._read(WorkspacePage, "", project_id=project, state=state, before=before, limit=limit)

    @asynccontextmanager
    async def open(
        self,
        project: str,
        *,
        agent: str | None = None,
        at: str | int | None = None,
        message: str = "",
        run: str | None = None,
    ) -> AsyncIterator[OpenWorkspace]:
        """A workspace on this machine for a block, completed at its end. If the block raises, the workspace stays open
        with the work in it, and a note on the exception says so. Raises `HeldElsewhere` if the folder is not on this
        machine."""
        opened = await self._opened(project, agent, at)
        try:
            yield opened
        except BaseException as error:
            opened.say_left_open(error)
            raise
        opened.completed = await self.complete(project, agent=agent, message=message, run=run)

    async def _opened(self, project: str, agent: str | None, at: str | int | None) -> OpenWorkspace:
        view = await self.create(project, agent=agent, at=at)
        path = Path(view.workspace_path)
        if not await asyncio.to_thread(path.is_dir):
            raise HeldElsewhere(
                f"The workspace of {view.agent_id} is at {path} on the node {view.node}, which this machine cannot "
                "reach. Work there, or abandon it and use checkout and commit from here.",
                node=view.node,
            )
        return OpenWorkspace(path=path, view=view)

    async def _read(self, answer: type[Body], route: str, **query: Any) -> Body:
        address = f"{_WORKSPACE}/{route}" if route else _WORKSPACE
        return await self._connection.retried(
            lambda: self._connection.call(answer, "GET", address, read_seconds=_LONGEST_SECONDS, **query)
        )

    async def _send(self, answer: type[Body], route: str, body: WorkspaceCommit, **query: Any) -> Body:
        return await self._connection.retried(
            lambda: self._connection.call(
                answer, "POST", f"{_WORKSPACE}/{route}", body, read_seconds=_LONGEST_SECONDS, **query
            )
        )


@documented_like(AsyncWorkspaces)
class Workspaces:
    """`AsyncWorkspaces` for code that is not async."""

    def __init__(self, workspaces: AsyncWorkspaces, portal: Portal) -> None:
        self._workspaces = workspaces
        self._portal = portal

    def create(self, project: str, *, agent: str | None = None, at: str | int | None = None) -> WorkspaceView:
        return self._portal.run(self._workspaces.create(project, agent=agent, at=at))

    def get(self, project: str, *, agent: str | None = None) -> WorkspaceView:
        return self._portal.run(self._workspaces.get(project, agent=agent))

    def get_shared_folder(self, project: str) -> SharedFolderView:
        return self._portal.run(self._workspaces.get_shared_folder(project))

    def status(self, project: str | None = None, *, agent: str | None = None) -> WorkspaceStatusView:
        return self._portal.run(self._workspaces.status(project, agent=agent))

    def diff(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        path: str | None = None,
        after: str = "",
        limit: int = 100,
        patch: bool = False,
    ) -> WorkspaceDiffPage:
        return self._portal.run(
            self._workspaces.diff(project, agent=agent, path=path, after=after, limit=limit, patch=patch)
        )

    def commit(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        message: str = "",
        run: str | None = None,
        conflicts_in: ConflictsInName = "review",
        allow: Sequence[str] = (),
    ) -> WorkspaceCommitView:
        return self._portal.run(
            self._workspaces.commit(
                project, agent=agent, message=message, run=run, conflicts_in=conflicts_in, allow=allow
            )
        )

    def complete(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        message: str = "",
        run: str | None = None,
        discard: bool = False,
        allow: Sequence[str] = (),
    ) -> WorkspaceCompleteView:
        return self._portal.run(
            self._workspaces.complete(project, agent=agent, message=message, run=run, discard=discard, allow=allow)
        )

    def abandon(self, project: str | None = None, *, agent: str | None = None) -> WorkspaceView:
        return self._portal.run(self._workspaces.abandon(project, agent=agent))

    def list(
        self,
        project: str | None = None,
        *,
        state: WorkspaceStateName | None = "open",
        before: UUID | None = None,
        limit: int = 100,
    ) -> WorkspacePage:
        return self._portal.run(self._workspaces.list(project, state=state, before=before, limit=limit))

    @contextmanager
    def open(
        self,
        project: str,
        *,
        agent: str | None = None,
        at: str | int | None = None,
        message: str = "",
        run: str | None = None,
    ) -> Iterator[OpenWorkspace]:
        opening = self._workspaces.open(project, agent=agent, at=at, message=message, run=run)
        with self._portal.entered(opening) as opened:
            yield opened


def _segment(name: str) -> str:
    if not name or name in (".", "..") or "/" in name:
        raise InvalidInput(f"{name[:120]!r} is not a name.")
    return quote(name, safe=":")
