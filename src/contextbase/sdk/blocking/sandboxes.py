# Generated from aio/sandboxes.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Sandboxes to run one command after the other in, as a part of the clients: `client.sandboxes`."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Unpack
from uuid import UUID

from pydantic import TypeAdapter

from contextbase.sdk.arguments import checked, input_checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.sdk.blocking.workspaces import Workspaces
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
    from contextbase.sdk.blocking.command_pipe import CommandPipe
    from contextbase.sdk.blocking.terminal import Terminal

__all__ = ["Sandbox", "Sandboxes"]

_SANDBOXES: Final = "/api/v1/sandboxes"
_ITEM: Final[TypeAdapter[ExecItem]] = TypeAdapter(ExecItem)
_LONGEST_SECONDS: Final = 86_400.0


class Sandbox:
    """One sandbox. `view` is as it was when asked for; `status` asks again. Its methods raise `NotFound` once it is
    deleted."""

    def __init__(self, view: SandboxView, connection: Connection, workspaces: Workspaces) -> None:
        self.view = view
        self.id = view.id
        self._connection = connection
        self._workspaces = workspaces
        self._route = f"{_SANDBOXES}/{view.id}"

    @checked
    def exec(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> ExecView:
        """Run a text in a shell, or a program with its arguments, to its end. Files stay, and so does the folder that
        a `cd` went to. A command that fails is an answer, not an error. It is never sent twice."""
        return self._connection.call(
            ExecView, "POST", f"{self._route}/exec", _body(command, options), read_seconds=_LONGEST_SECONDS
        )

    @checked
    def stream(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> Generator[ExecItem, None, None]:
        """Run a command, and yield its output as it comes. To stop reading is to stop the command. A failure after the
        start is a `FailedItem`, not an exception."""
        for item in self._connection.items(_ITEM, f"{self._route}/exec", _body(command, options)):
            yield item

    @contextmanager
    def pipe(self, command: str | Sequence[str], **options: Unpack[PipeOptions]) -> Iterator["CommandPipe"]:
        """Run a command, send to its standard input and read its output while it runs; it ends with the block."""
        from contextbase.sdk.blocking.command_pipe import open_pipe

        with input_checked("command"):
            body = CommandBody.model_validate({**command_fields(command), **options})
        address, headers = self._connection.socket_of(f"{self._route}/exec")
        with open_pipe(address, headers, body) as pipe:
            yield pipe

    @contextmanager
    def terminal(self, command: str | None = None, *, rows: int = 24, columns: int = 80) -> Iterator["Terminal"]:
        """Open a shell, or run a command for one, on a terminal; it ends with the block. Raises `Unavailable` if none
        can be opened."""
        from contextbase.sdk.blocking.terminal import open_terminal

        address, headers = self._connection.socket_of(
            f"{self._route}/terminal", rows=rows, columns=columns, command=command
        )
        with open_terminal(address, headers) as terminal:
            yield terminal

    def status(self) -> SandboxView:
        """Whether it runs, and what it uses."""
        return self._connection.read(SandboxView, self._route)

    def changes(self) -> WorkspaceStatusView:
        """What is in the workspace and not committed yet."""
        return self._workspaces.status(workspace=self.view.workspace_id)

    def commit(self, message: str = "", *, run: str | None = None) -> WorkspaceCommitView:
        """Commit what changed; the sandbox goes on. Refused changes are a part of the answer."""
        return self._workspaces.commit(workspace=self.view.workspace_id, message=message, run=run)

    def complete(self, message: str = "", *, run: str | None = None) -> WorkspaceCompleteView:
        """Stop the sandbox, commit what changed, and remove the workspace, unless it holds what could not be committed
        (`removed` is False then)."""
        return self._workspaces.complete(workspace=self.view.workspace_id, message=message, run=run)

    def delete(self) -> SandboxView:
        """Stop the sandbox. The workspace stays, with the work in it."""
        return self._connection.call(SandboxView, "DELETE", self._route)


class Sandboxes:
    """Sandboxes that last, to run one command after the other in."""

    def __init__(self, connection: Connection, workspaces: Workspaces) -> None:
        self._connection = connection
        self._workspaces = workspaces

    @checked
    def create(self, project: str, *, agent: str | None = None, **options: Unpack[SandboxOptions]) -> Sandbox:
        """A sandbox on the agent's workspace, which is created if there is none. An agent that has a sandbox already
        gets that one, as it is."""
        body = SandboxCreate.model_validate({"project": project, "agent": agent, **options})
        view = self._connection.retried(
            lambda: self._connection.call(SandboxView, "POST", _SANDBOXES, body, read_seconds=_LONGEST_SECONDS)
        )
        return self._opened(view)

    @checked
    def get(self, sandbox_id: UUID) -> Sandbox:
        """A sandbox that was created before. Raises `NotFound` if there is none."""
        return self._opened(self._connection.read(SandboxView, f"{_SANDBOXES}/{sandbox_id}"))

    @checked
    def list(self, project: str | None = None, *, before: UUID | None = None, limit: int = 100) -> SandboxPage:
        """Sandboxes, newest first: everybody's for 'admin', else your own. Pass the page's `next_before` for the next
        page."""
        return self._connection.read(SandboxPage, _SANDBOXES, project=project, before=before, limit=limit)

    def _opened(self, view: SandboxView) -> Sandbox:
        return Sandbox(view, self._connection, self._workspaces)


def _body(command: str | Sequence[str], options: ExecOptions) -> CommandBody:
    with input_checked("command"):
        return CommandBody.model_validate({**command_fields(command), **options})
