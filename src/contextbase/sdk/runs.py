"""Single commands of agents, as a part of the clients: `client.runs`."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final, Unpack

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

from contextbase.sdk.arguments import checked, documented_like, input_checked
from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.wire.sandbox import (
    CommitWhenName,
    LimitsBody,
    NetworkName,
    RunCommandCreate,
    RunItem,
    RunView,
)

__all__ = ["AsyncRuns", "RunOptions", "Runs", "command_fields"]

_COMMAND: Final = "/api/v1/runs/command"
_ITEM: Final[TypeAdapter[RunItem]] = TypeAdapter(RunItem)
_LONGEST_SECONDS: Final = 86_400.0


def command_fields(command: str | Sequence[str]) -> dict[str, Any]:
    """A text is for a shell; a sequence is a program and its arguments."""
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}


@with_config(extra="forbid")
class RunOptions(TypedDict, total=False):
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


def _body(project: str, command: str | Sequence[str], agent: str | None, options: RunOptions) -> RunCommandCreate:
    with input_checked("command"):
        return RunCommandCreate.model_validate(
            {"project_id": project, "agent_id": agent, **command_fields(command), **options}
        )


class AsyncRuns:
    """`command`: a text for a shell, or a program and its arguments. It runs in a workspace of its own, on the head of
    the project, and what it changed is committed when it ended with 0 (`commit`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    async def command(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[RunOptions]
    ) -> RunView:
        """Run a command to its end. One that fails is an answer, not an error. It is never sent twice: when the answer
        is lost, that raises `Unavailable`, and the agent's workspace has what it changed."""
        body = _body(project, command, agent, options)
        return await self._connection.call(RunView, "POST", _COMMAND, body, read_seconds=_LONGEST_SECONDS)

    @checked
    async def stream(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[RunItem, None]:
        """Run a command, and yield what happens as it happens. To stop reading is to stop the command. A failure after
        the start is a `FailedItem`, not an exception."""
        body = _body(project, command, agent, options)
        async for item in self._connection.items(_ITEM, _COMMAND, body):
            yield item


@documented_like(AsyncRuns)
class Runs:
    """`AsyncRuns` for code that is not async."""

    def __init__(self, runs: AsyncRuns, portal: Portal) -> None:
        self._runs = runs
        self._portal = portal

    def command(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[RunOptions]
    ) -> RunView:
        return self._portal.run(self._runs.command(project, command, agent=agent, **options))

    def stream(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[RunOptions]
    ) -> Iterator[RunItem]:
        return self._portal.iterate(self._runs.stream(project, command, agent=agent, **options))
