"""Private folders of agents, as a part of the clients: `client.workspaces`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

from contextbase.errors import HeldElsewhere, InvalidInput
from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.waiting import in_thread
from contextbase.sdk.arguments import checked
from contextbase.sdk.handles import OpenWorkspace
from contextbase.sdk.http import Body
from contextbase.wire.workspace import (
    ConflictsInName,
    SharedFolderView,
    WorkspaceCommit,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceCreate,
    WorkspaceDiffPage,
    WorkspacePage,
    WorkspaceRefreshView,
    WorkspaceStateName,
    WorkspaceStatusView,
    WorkspaceView,
)

__all__ = ["AsyncWorkspaces"]

_WORKSPACES: Final = "/api/v1/workspaces"
_PROJECTS: Final = "/api/v1/projects"
_LONGEST_SECONDS: Final = 900.0  # what an agent left may be much to read, store and merge


class AsyncWorkspaces:
    """Private folders on the server's machine. `agent` is whose workspace is meant (for example agent:indexer; None:
    your own; another's needs 'admin'). `project` may be left out if the agent has one workspace only. `workspace` is a
    workspace's id, instead of both. Methods raise `NotFound` if there is no such workspace, and `HeldElsewhere` if it
    is on another server."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def create(
        self,
        project: str,
        *,
        agent: str | None = None,
        at: str | int | None = None,
        folder: str | None = None,
        meta: bool = False,
    ) -> WorkspaceView:
        """Create a folder on a snapshot of the project (`at`: a seq, a ref such as head~3, or a tag; None: the head).
        With `folder`, that folder of the project is all it has, as its top. With `meta`, `client.files` shows what is
        known about each file as JSON in `.meta`. An agent that has a workspace already gets
        that one; raises `Conflict` if that is on another snapshot than `at`, of another folder, or without `meta`."""
        body = WorkspaceCreate(project=project, agent=agent, at=at, folder=folder, meta=meta)
        return await self._connection.retried(
            lambda: self._connection.call(WorkspaceView, "POST", _WORKSPACES, body, read_seconds=_LONGEST_SECONDS)
        )

    @checked
    async def get(
        self, project: str | None = None, *, agent: str | None = None, workspace: UUID | None = None
    ) -> WorkspaceView:
        """The agent's workspace. After a crash of the server or a reboot the folder is there again."""
        return await self._read(WorkspaceView, _address(agent, workspace), project=project)

    @checked
    async def get_shared_folder(self, project: str) -> SharedFolderView:
        """A read-only folder that follows the project's head, shared by all who only read."""
        return await self._read(SharedFolderView, f"{_PROJECTS}/{_segment(project)}/shared-folder")

    @checked
    async def status(
        self, project: str | None = None, *, agent: str | None = None, workspace: UUID | None = None
    ) -> WorkspaceStatusView:
        """What is not committed yet, what cannot be, and what is ignored."""
        return await self._read(WorkspaceStatusView, f"{_address(agent, workspace)}/status", project=project)

    @checked
    async def diff(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        workspace: UUID | None = None,
        path: str | None = None,
        after: str = "",
        limit: int = 100,
        patch: bool = False,
    ) -> WorkspaceDiffPage:
        """What differs and is not committed yet, by path; with `patch` also as text. Pass the page's `next_after` as
        `after` for the next page."""
        address = f"{_address(agent, workspace)}/diff"
        return await self._read(
            WorkspaceDiffPage, address, project=project, path=path, after=after, limit=limit, patch=patch
        )

    @checked
    async def commit(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        workspace: UUID | None = None,
        message: str = "",
        run: str | None = None,
        conflicts_in: ConflictsInName = "review",
        allow: Sequence[str] = (),
        refresh: bool = False,
    ) -> WorkspaceCommitView:
        """Commit what changed; the agent goes on in its folder, with the merges in it. Refused changes are a part of
        the answer. `allow`: paths or patterns of files that may be shared though they look like credentials; others of
        those are held back, and in `reported`. With `refresh` the folder then gets what others have changed."""
        body = WorkspaceCommit(message=message, run=run, conflicts_in=conflicts_in, allow=[*allow])
        address = f"{_address(agent, workspace)}/commit"
        return await self._send(WorkspaceCommitView, address, body, project=project, refresh=refresh)

    @checked
    async def refresh(
        self, project: str | None = None, *, agent: str | None = None, workspace: UUID | None = None
    ) -> WorkspaceRefreshView:
        """Bring what others have changed into the folder, while the agent works in it. Files that the agent changed,
        too, are merged where that is clean; everything else stays as the agent has it, and is in `kept`."""
        return await self._send(WorkspaceRefreshView, f"{_address(agent, workspace)}/refresh", None, project=project)

    @checked
    async def complete(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        workspace: UUID | None = None,
        message: str = "",
        run: str | None = None,
        discard: bool = False,
        allow: Sequence[str] = (),
    ) -> WorkspaceCompleteView:
        """Commit, then remove the folder. One that holds what could not be committed stays (`removed` is False), unless
        you `discard` that. `allow`: as for `commit`."""
        body = WorkspaceCommit(message=message, run=run, allow=[*allow])
        address = f"{_address(agent, workspace)}/complete"
        return await self._send(WorkspaceCompleteView, address, body, project=project, discard=discard)

    @checked
    async def abandon(
        self, project: str | None = None, *, agent: str | None = None, workspace: UUID | None = None
    ) -> WorkspaceView:
        """Remove the folder and what is in it, for good."""
        address = f"{_address(agent, workspace)}/abandon"
        return await self._connection.call(WorkspaceView, "POST", address, project=project)

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
        return await self._read(WorkspacePage, _WORKSPACES, project=project, state=state, before=before, limit=limit)

    @asynccontextmanager
    async def open(
        self,
        project: str,
        *,
        agent: str | None = None,
        at: str | int | None = None,
        folder: str | None = None,
        message: str = "",
        run: str | None = None,
    ) -> AsyncIterator[OpenWorkspace]:
        """A workspace on this machine for a block, completed at its end. If the block raises, the workspace stays open
        with the work in it, and a note on the exception says so. Raises `HeldElsewhere` if the folder is not on this
        machine."""
        opened = await self._opened(project, agent, at, folder)
        try:
            yield opened
        except BaseException as error:
            opened.say_left_open(error)
            raise
        opened.completed = await self.complete(workspace=opened.view.id, message=message, run=run)

    async def _opened(self, project: str, agent: str | None, at: str | int | None, folder: str | None) -> OpenWorkspace:
        view = await self.create(project, agent=agent, at=at, folder=folder)
        path = Path(view.path)
        if not await in_thread(path.is_dir):
            raise HeldElsewhere(
                f"The workspace of {view.agent} is at {path} on the machine {view.machine}, which is not this one. "
                "Work there, or abandon it and use checkout and commit from here.",
                machine=view.machine,
            )
        return OpenWorkspace(path=path, view=view)

    async def _read(self, answer: type[Body], address: str, **query: Any) -> Body:
        return await self._connection.read(answer, address, read_seconds=_LONGEST_SECONDS, **query)

    async def _send(self, answer: type[Body], address: str, body: WorkspaceCommit | None, **query: Any) -> Body:
        return await self._connection.retried(
            lambda: self._connection.call(answer, "POST", address, body, read_seconds=_LONGEST_SECONDS, **query)
        )


def _address(agent: str | None, workspace: UUID | None) -> str:
    if workspace is not None and agent is not None:
        raise InvalidInput("Give an agent or a workspace's id, not both.")
    if workspace is not None:
        return f"{_WORKSPACES}/{workspace}"
    if agent is None:
        return f"{_WORKSPACES}/me"
    return f"{_WORKSPACES}/{'' if ':' in agent else 'agent:'}{_segment(agent)}"


def _segment(name: str) -> str:
    if not name or name in (".", "..") or "/" in name:
        raise InvalidInput(f"{name[:120]!r} is not a name.")
    return quote(name, safe=":")
