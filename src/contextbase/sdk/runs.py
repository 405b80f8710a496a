"""Single commands of agents, as a part of the clients: `client.runs`."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from pydantic import TypeAdapter

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


class RunOptions(TypedDict, total=False):
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
    return RunCommandCreate.model_validate(
        {"project_id": project, "agent_id": agent, **command_fields(command), **options}
    )


class AsyncRuns:
    """`command`: a text for a shell, or a program and its arguments. It runs in a workspace of its own, on the head of
    the project, and what it changed is committed when it ended with 0 (`commit`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def command(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[RunOptions]
    ) -> RunView:
        """To its end. A command that fails is an answer, not an error. It is never sent twice."""
        body = _body(project, command, agent, options)
        return await self._connection.call(RunView, "POST", _COMMAND, body, read_seconds=_LONGEST_SECONDS)

    async def stream(
        self, project: str, command: str | Sequence[str], *, agent: str | None = None, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[RunItem, None]:
        """As `command`, but what happens is told as it happens. Whoever stops reading ends it."""
        body = _body(project, command, agent, options)
        async for item in self._connection.items(_ITEM, _COMMAND, body):
            yield item


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
