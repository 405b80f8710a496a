"""Sandboxes to run one command after the other in, as a part of the clients: `client.sandboxes`."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Unpack
from uuid import UUID

from pydantic import TypeAdapter

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.workspaces import AsyncWorkspaces
from contextbase.sdk.arguments import checked, input_checked
from contextbase.sdk.options import ExecOptions, PipeOptions, SandboxOptions, command_fields
from contextbase.wire.sandbox import (
    CommandBody,
    ExecItem,
    ExecView,
    SandboxCreate,
    SandboxPage,
    SandboxView,
)
from contextbase.wire.workspace import WorkspaceCommitView, WorkspaceCompleteView, WorkspaceStatusView

if TYPE_CHECKING:
    from contextbase.sdk.aio.command_pipe import AsyncCommandPipe
    from contextbase.sdk.aio.terminal import AsyncTerminal

__all__ = ["AsyncSandbox", "AsyncSandboxes"]

_SANDBOXES: Final = "/api/v1/sandboxes"
_ITEM: Final[TypeAdapter[ExecItem]] = TypeAdapter(ExecItem)
_LONGEST_SECONDS: Final = 86_400.0


class AsyncSandbox:
    """One sandbox. `view` is as it was when asked for; `status` asks again. Its methods raise `NotFound` once it is
    deleted."""

    def __init__(self, view: SandboxView, connection: AsyncConnection, workspaces: AsyncWorkspaces) -> None:
        self.view = view
        self.id = view.id
        self._connection = connection
        self._workspaces = workspaces
        self._route = f"{_SANDBOXES}/{view.id}"

    @checked
    async def exec(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> ExecView:
        """Run a text in a shell, or a program with its arguments, to its end. Files stay, and so does the folder that
        a `cd` went to. A command that fails is an answer, not an error. It is never sent twice."""
        return await self._connection.call(
            ExecView, "POST", f"{self._route}/exec", _body(command, options), read_seconds=_LONGEST_SECONDS
        )

    @checked
    async def stream(
        self, command: str | Sequence[str], **options: Unpack[ExecOptions]
    ) -> AsyncGenerator[ExecItem, None]:
        """Run a command, and yield its output as it comes. To stop reading is to stop the command. A failure after the
        start is a `FailedItem`, not an exception."""
        async for item in self._connection.items(_ITEM, f"{self._route}/exec", _body(command, options)):
            yield item

    @asynccontextmanager
    async def pipe(
        self, command: str | Sequence[str], **options: Unpack[PipeOptions]
    ) -> AsyncIterator["AsyncCommandPipe"]:
        """Run a command, send to its standard input and read its output while it runs; it ends with the block."""
        from contextbase.sdk.aio.command_pipe import open_pipe

        with input_checked("command"):
            body = CommandBody.model_validate({**command_fields(command), **options})
        address, headers = self._connection.socket_of(f"{self._route}/exec")
        async with open_pipe(address, headers, body) as pipe:
            yield pipe

    @asynccontextmanager
    async def terminal(
        self, command: str | None = None, *, rows: int = 24, columns: int = 80
    ) -> AsyncIterator["AsyncTerminal"]:
        """Open a shell, or run a command for one, on a terminal; it ends with the block. Raises `Unavailable` if none
        can be opened."""
        from contextbase.sdk.aio.terminal import open_terminal

        address, headers = self._connection.socket_of(
            f"{self._route}/terminal", rows=rows, columns=columns, command=command
        )
        async with open_terminal(address, headers) as terminal:
            yield terminal

    async def status(self) -> SandboxView:
        """Whether it runs, and what it uses."""
        return await self._connection.read(SandboxView, self._route)

    async def changes(self) -> WorkspaceStatusView:
        """What is in the workspace and not committed yet."""
        return await self._workspaces.status(workspace=self.view.workspace_id)

    async def commit(self, message: str = "", *, run: str | None = None) -> WorkspaceCommitView:
        """Commit what changed; the sandbox goes on. Refused changes are a part of the answer."""
        return await self._workspaces.commit(workspace=self.view.workspace_id, message=message, run=run)

    async def complete(self, message: str = "", *, run: str | None = None) -> WorkspaceCompleteView:
        """Stop the sandbox, commit what changed, and remove the workspace, unless it holds what could not be committed
        (`removed` is False then)."""
        return await self._workspaces.complete(workspace=self.view.workspace_id, message=message, run=run)

    async def delete(self) -> SandboxView:
        """Stop the sandbox. The workspace stays, with the work in it."""
        return await self._connection.call(SandboxView, "DELETE", self._route)


class AsyncSandboxes:
    """Sandboxes that last, to run one command after the other in."""

    def __init__(self, connection: AsyncConnection, workspaces: AsyncWorkspaces) -> None:
        self._connection = connection
        self._workspaces = workspaces

    @checked
    async def create(
        self, project: str, *, agent: str | None = None, **options: Unpack[SandboxOptions]
    ) -> AsyncSandbox:
        """A sandbox on the agent's workspace, which is created if there is none. An agent that has a sandbox already
        gets that one, as it is."""
        body = SandboxCreate.model_validate({"project": project, "agent": agent, **options})
        view = await self._connection.retried(
            lambda: self._connection.call(SandboxView, "POST", _SANDBOXES, body, read_seconds=_LONGEST_SECONDS)
        )
        return self._opened(view)

    @checked
    async def get(self, sandbox_id: UUID) -> AsyncSandbox:
        """A sandbox that was created before. Raises `NotFound` if there is none."""
        return self._opened(await self._connection.read(SandboxView, f"{_SANDBOXES}/{sandbox_id}"))

    @checked
    async def list(self, project: str | None = None, *, before: UUID | None = None, limit: int = 100) -> SandboxPage:
        """Sandboxes, newest first: everybody's for 'admin', else your own. Pass the page's `next_before` for the next
        page."""
        return await self._connection.read(SandboxPage, _SANDBOXES, project=project, before=before, limit=limit)

    def _opened(self, view: SandboxView) -> AsyncSandbox:
        return AsyncSandbox(view, self._connection, self._workspaces)


def _body(command: str | Sequence[str], options: ExecOptions) -> CommandBody:
    with input_checked("command"):
        return CommandBody.model_validate({**command_fields(command), **options})
