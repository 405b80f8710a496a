"""Sandboxes to run one command after the other in, as a part of the clients: `client.sandboxes`."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, Unpack
from uuid import UUID

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

from contextbase.sdk.arguments import checked, documented_like, input_checked
from contextbase.sdk.commands import command_fields
from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.sdk.workspaces import AsyncWorkspaces
from contextbase.wire.sandbox import (
    CommandBody,
    ExecItem,
    ExecView,
    LimitsBody,
    NetworkName,
    SandboxCreate,
    SandboxPage,
    SandboxView,
)
from contextbase.wire.workspace import WorkspaceCommitView, WorkspaceCompleteView, WorkspaceStatusView

if TYPE_CHECKING:
    from contextbase.sdk.terminal import AsyncTerminal, Terminal

__all__ = ["AsyncSandbox", "AsyncSandboxes", "ExecOptions", "Sandbox", "SandboxOptions", "Sandboxes"]

_SANDBOXES: Final = "/api/v1/sandboxes"
_ITEM: Final[TypeAdapter[ExecItem]] = TypeAdapter(ExecItem)
_LONGEST_SECONDS: Final = 86_400.0


@with_config(extra="forbid")
class ExecOptions(TypedDict, total=False):
    """How one command runs."""

    environment: Mapping[str, str]
    cwd: str  # relative to the workspace; left out: where the last command went to
    stdin: str
    timeout: float


@with_config(extra="forbid")
class SandboxOptions(TypedDict, total=False):
    """What all commands of a sandbox may use; what is left out is as the server has it."""

    limits: LimitsBody
    network: NetworkName
    environment: Mapping[str, str]  # of every command


class AsyncSandbox:
    """One sandbox. `view` is as it was when asked for; `status` asks again. Its methods raise `NotFound` once it is
    deleted."""

    def __init__(self, view: SandboxView, connection: Connection, workspaces: AsyncWorkspaces) -> None:
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
    async def terminal(
        self, command: str | None = None, *, rows: int = 24, columns: int = 80
    ) -> AsyncIterator["AsyncTerminal"]:
        """Open a shell, or run a command for one, on a terminal; it ends with the block. Raises `Unavailable` if none
        can be opened."""
        from contextbase.sdk.terminal import open_terminal

        address, headers = self._connection.socket_of(
            f"{self._route}/terminal", rows=rows, columns=columns, command=command
        )
        async with open_terminal(address, headers) as terminal:
            yield terminal

    async def status(self) -> SandboxView:
        """Whether it runs, and what it uses."""
        return await self._connection.call(SandboxView, "GET", self._route)

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

    def __init__(self, connection: Connection, workspaces: AsyncWorkspaces) -> None:
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
        return self._opened(await self._connection.call(SandboxView, "GET", f"{_SANDBOXES}/{sandbox_id}"))

    @checked
    async def list(self, project: str | None = None, *, before: UUID | None = None, limit: int = 100) -> SandboxPage:
        """Sandboxes, newest first: everybody's for 'admin', else your own. Pass the page's `next_before` for the next
        page."""
        return await self._connection.call(SandboxPage, "GET", _SANDBOXES, project=project, before=before, limit=limit)

    def _opened(self, view: SandboxView) -> AsyncSandbox:
        return AsyncSandbox(view, self._connection, self._workspaces)


@documented_like(AsyncSandbox)
class Sandbox:
    """`AsyncSandbox` for code that is not async."""

    def __init__(self, sandbox: AsyncSandbox, portal: Portal) -> None:
        self._sandbox = sandbox
        self._portal = portal
        self.view = sandbox.view
        self.id = sandbox.id

    def exec(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> ExecView:
        return self._portal.run(self._sandbox.exec(command, **options))

    def stream(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> Iterator[ExecItem]:
        return self._portal.iterate(self._sandbox.stream(command, **options))

    @contextmanager
    def terminal(self, command: str | None = None, *, rows: int = 24, columns: int = 80) -> Iterator["Terminal"]:
        from contextbase.sdk.terminal import Terminal

        with self._portal.entered(self._sandbox.terminal(command, rows=rows, columns=columns)) as terminal:
            yield Terminal(terminal, self._portal)

    def status(self) -> SandboxView:
        return self._portal.run(self._sandbox.status())

    def changes(self) -> WorkspaceStatusView:
        return self._portal.run(self._sandbox.changes())

    def commit(self, message: str = "", *, run: str | None = None) -> WorkspaceCommitView:
        return self._portal.run(self._sandbox.commit(message, run=run))

    def complete(self, message: str = "", *, run: str | None = None) -> WorkspaceCompleteView:
        return self._portal.run(self._sandbox.complete(message, run=run))

    def delete(self) -> SandboxView:
        return self._portal.run(self._sandbox.delete())


@documented_like(AsyncSandboxes)
class Sandboxes:
    """`AsyncSandboxes` for code that is not async."""

    def __init__(self, sandboxes: AsyncSandboxes, portal: Portal) -> None:
        self._sandboxes = sandboxes
        self._portal = portal

    def create(self, project: str, *, agent: str | None = None, **options: Unpack[SandboxOptions]) -> Sandbox:
        return Sandbox(self._portal.run(self._sandboxes.create(project, agent=agent, **options)), self._portal)

    def get(self, sandbox_id: UUID) -> Sandbox:
        return Sandbox(self._portal.run(self._sandboxes.get(sandbox_id)), self._portal)

    def list(self, project: str | None = None, *, before: UUID | None = None, limit: int = 100) -> SandboxPage:
        return self._portal.run(self._sandboxes.list(project, before=before, limit=limit))


def _body(command: str | Sequence[str], options: ExecOptions) -> CommandBody:
    with input_checked("command"):
        return CommandBody.model_validate({**command_fields(command), **options})
