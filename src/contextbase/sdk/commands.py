"""Single commands of agents, as a part of the clients: `client.commands`."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final, Unpack

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

from contextbase.sdk.arguments import checked, documented_like, input_checked
from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.wire.sandbox import (
    CommandCreate,
    CommandItem,
    CommandView,
    CommitWhenName,
    LimitsBody,
    NetworkName,
)

__all__ = ["AsyncCommands", "CommandOptions", "Commands", "command_fields"]

_COMMANDS: Final = "/api/v1/commands"
_ITEM: Final[TypeAdapter[CommandItem]] = TypeAdapter(CommandItem)
_LONGEST_SECONDS: Final = 86_400.0


def command_fields(command: str | Sequence[str]) -> dict[str, Any]:
    """A text is for a shell; a sequence is a program and its arguments."""
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}


@with_config(extra="forbid")
class CommandOptions(TypedDict, total=False):
    """How a command runs; what is left out is as the server has it."""

    environment: Mapping[str, str]
    cwd: str  # relative to the workspace
    stdin: str
    timeout: float
    limits: LimitsBody
    network: NetworkName
    commit: CommitWhenName
    message: str
    run: str  # a name of yours for the execution


def _body(project: str, command: str | Sequence[str], agent: str | None, options: CommandOptions) -> CommandCreate:
    with input_checked("command"):
        return CommandCreate.model_validate({"project": project, "agent": agent, **command_fields(command), **options})


class AsyncCommands:
    """`command`: a text for a shell, or a program and its arguments. It runs in a workspace of its own, on the head of
    the project, and what it changed is committed when it ended with 0 (`commit`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    async def run(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[CommandOptions]
    ) -> CommandView:
        """Run a command to its end. One that fails is an answer, not an error. It is never sent twice: when the answer
        is lost, that raises `Unavailable`, and the agent's workspace has what it changed."""
        body = _body(project, command, agent, options)
        return await self._connection.call(CommandView, "POST", _COMMANDS, body, read_seconds=_LONGEST_SECONDS)

    @checked
    async def stream(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[CommandOptions]
    ) -> AsyncGenerator[CommandItem, None]:
        """Run a command, and yield what happens as it happens. To stop reading is to stop the command. A failure after
        the start is a `FailedItem`, not an exception."""
        body = _body(project, command, agent, options)
        async for item in self._connection.items(_ITEM, _COMMANDS, body):
            yield item


@documented_like(AsyncCommands)
class Commands:
    """`AsyncCommands` for code that is not async."""

    def __init__(self, commands: AsyncCommands, portal: Portal) -> None:
        self._commands = commands
        self._portal = portal

    def run(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[CommandOptions]
    ) -> CommandView:
        return self._portal.run(self._commands.run(project, command, agent=agent, **options))

    def stream(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[CommandOptions]
    ) -> Iterator[CommandItem]:
        return self._portal.iterate(self._commands.stream(project, command, agent=agent, **options))
