"""Single commands of agents, as a part of the clients: `client.commands`."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final, Unpack

from pydantic import TypeAdapter

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.arguments import checked, input_checked
from contextbase.sdk.options import CommandOptions, command_fields
from contextbase.wire.sandbox import (
    CommandCreate,
    CommandItem,
    CommandView,
)

__all__ = ["AsyncCommands"]

_COMMANDS: Final = "/api/v1/commands"
_ITEM: Final[TypeAdapter[CommandItem]] = TypeAdapter(CommandItem)
_LONGEST_SECONDS: Final = 86_400.0


def _body(project: str, command: str | Sequence[str], agent: str | None, options: CommandOptions) -> CommandCreate:
    with input_checked("command"):
        return CommandCreate.model_validate({"project": project, "agent": agent, **command_fields(command), **options})


class AsyncCommands:
    """`command`: a text for a shell, or a program and its arguments. It runs in a workspace of its own, on the head of
    the project, and what it changed is committed when it ended with 0 (`commit`)."""

    def __init__(self, connection: AsyncConnection) -> None:
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
