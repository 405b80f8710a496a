"""Sandboxes to run one command after the other in, as a part of the clients: `client.sandboxes`."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, TypedDict, Unpack
from uuid import UUID

from pydantic import TypeAdapter

from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.sdk.runs import command_fields
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


class ExecOptions(TypedDict, total=False):
    environment: Mapping[str, str]
    cwd: str  # relative to the workspace; left out: where the last command went to
    stdin: str
    timeout: float


class SandboxOptions(TypedDict, total=False):
    limits: LimitsBody
    network: NetworkName
    environment: Mapping[str, str]  # of every command


class AsyncSandbox:
    """`view` is as it was when asked for; `status` asks again."""

    def __init__(self, view: SandboxView, connection: Connection, workspaces: AsyncWorkspaces) -> None:
        self.view = view
        self.id = view.sandbox_id
        self._connection = connection
        self._workspaces = workspaces
        self._route = f"{_SANDBOXES}/{view.sandbox_id}"
        self._project = str(view.project_id)

    async def exec(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> ExecView:
        """Run a text in a shell, or a program with its arguments, to its end. Files stay, and so does the folder that
        a `cd` went to. A command that fails is an answer, not an error. It is never sent twice."""
        return await self._connection.call(
            ExecView, "POST", f"{self._route}/exec", _body(command, options), read_seconds=_LONGEST_SECONDS
        )

    async def stream(
        self, command: str | Sequence[str], **options: Unpack[ExecOptions]
    ) -> AsyncGenerator[ExecItem, None]:
        """As `exec`, but the output is told as it comes. Whoever stops reading ends the command."""
        async for item in self._connection.items(_ITEM, f"{self._route}/exec", _body(command, options)):
            yield item

    @asynccontextmanager
    async def terminal(
        self, command: str | None = None, *, rows: int = 24, columns: int = 80
    ) -> AsyncIterator["AsyncTerminal"]:
        """A shell on a terminal, or a command for one; ended with the block."""
        from contextbase.sdk.terminal import open_terminal

        address, headers = self._connection.socket_of(
            f"{self._route}/terminal", rows=rows, columns=columns, command=command
        )
        async with open_terminal(address, headers) as terminal:
            yield terminal

    async def status(self) -> SandboxView:
        return await self._connection.call(SandboxView, "GET", self._route)

    async def changes(self) -> WorkspaceStatusView:
        """What is in the workspace and not committed yet."""
        return await self._workspaces.status(self._project, agent=self.view.agent_id)

    async def commit(self, message: str = "", *, run: str | None = None) -> WorkspaceCommitView:
        """What changed goes through the gate; the sandbox goes on."""
        return await self._workspaces.commit(self._project, agent=self.view.agent_id, message=message, run=run)

    async def complete(self, message: str = "", *, run: str | None = None) -> WorkspaceCompleteView:
        """End the sandbox, commit what changed, and remove the workspace."""
        return await self._workspaces.complete(self._project, agent=self.view.agent_id, message=message, run=run)

    async def remove(self) -> SandboxView:
        """End the sandbox. The workspace stays, with the work in it."""
        return await self._connection.call(SandboxView, "DELETE", self._route)


class AsyncSandboxes:
    def __init__(self, connection: Connection, workspaces: AsyncWorkspaces) -> None:
        self._connection = connection
        self._workspaces = workspaces

    async def create(
        self, project: str, *, agent: str | None = None, **options: Unpack[SandboxOptions]
    ) -> AsyncSandbox:
        """On the agent's workspace, which is made if need be; if it has a sandbox already, that one, as it is."""
        body = SandboxCreate.model_validate({"project_id": project, "agent_id": agent, **options})
        view = await self._connection.retried(
            lambda: self._connection.call(SandboxView, "POST", _SANDBOXES, body, read_seconds=_LONGEST_SECONDS)
        )
        return self._opened(view)

    async def get(self, sandbox_id: UUID) -> AsyncSandbox:
        """One that was made before: by an earlier run of this program, say."""
        return self._opened(await self._connection.call(SandboxView, "GET", f"{_SANDBOXES}/{sandbox_id}"))

    async def list(self, project: str | None = None, *, before: UUID | None = None, limit: int = 100) -> SandboxPage:
        """Newest first: everybody's for 'admin', else your own."""
        return await self._connection.call(
            SandboxPage, "GET", _SANDBOXES, project_id=project, before=before, limit=limit
        )

    def _opened(self, view: SandboxView) -> AsyncSandbox:
        return AsyncSandbox(view, self._connection, self._workspaces)


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

    def remove(self) -> SandboxView:
        return self._portal.run(self._sandbox.remove())


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
    return CommandBody.model_validate({**command_fields(command), **options})
