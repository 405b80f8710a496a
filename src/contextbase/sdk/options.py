"""What callers may pass to the clients by name, and what readers of a stream receive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import with_config
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

from contextbase.agent_vocabulary import ExecutionProfile, PermissionDecision
from contextbase.vocabulary import Land
from contextbase.wire.history import OperatorTypeName
from contextbase.wire.sandbox import CommitWhenName, LimitsBody, NetworkName

__all__ = [
    "AnswerOptions",
    "ArchiveFormat",
    "AuditFilter",
    "CommandOptions",
    "ExecOptions",
    "KindName",
    "PipeOptions",
    "ProfileName",
    "QuestionStatusName",
    "Received",
    "SandboxOptions",
    "SessionOptions",
    "command_fields",
]

Item = TypeVar("Item")

ArchiveFormat = Literal["tar", "tar.gz", "zip"]
KindName = Literal["user", "agent", "adapter"]
LandName = Literal["auto", "after_review", "never"]
ProfileName = Literal["default", "ask", "plan"]
QuestionStatusName = Literal["pending", "answered", "expired", "canceled"]
DecisionName = Literal["allow_once", "allow_session", "deny"]


@with_config(extra="forbid")
class AuditFilter(TypedDict, total=False):
    """Which rows of the audit trail are meant: all that is given must match."""

    principal: str | None  # such as agent:indexer
    action: str | None  # such as commit
    path: str | None  # and what is below it
    node_id: UUID | None  # a file by its id, whatever it was called
    operator_type: OperatorTypeName | None  # the way in, such as agent, api or web_ui
    since: datetime | None
    until: datetime | None  # not included
    first_seq: int | None
    last_seq: int | None


@with_config(extra="forbid")
class PipeOptions(TypedDict, total=False):
    """How one command runs whose input is sent while it runs."""

    environment: Mapping[str, str]
    cwd: str  # relative to the workspace; left out: that, or in a sandbox where the last command went to
    timeout: float


@with_config(extra="forbid")
class ExecOptions(PipeOptions, total=False):
    """How one command runs."""

    stdin: str
    log: bool  # keep what it prints as .logs/PROGRAM/TIME.log in the workspace


@with_config(extra="forbid")
class CommandOptions(ExecOptions, total=False):
    """How a command runs in a workspace of its own; what is left out is as the server has it."""

    limits: LimitsBody
    network: NetworkName
    folder: str  # of the project: all that the command has, as its workspace
    commit: CommitWhenName
    message: str
    run: str  # a name of yours for the execution


@with_config(extra="forbid")
class SandboxOptions(TypedDict, total=False):
    """What all commands of a sandbox may use; what is left out is as the server has it."""

    limits: LimitsBody
    network: NetworkName
    environment: Mapping[str, str]  # of every command


@with_config(extra="forbid")
class AnswerOptions(TypedDict, total=False):
    """What a person says to an agent's question: values or a text. To a permission: a decision."""

    values: Sequence[str]  # of the question's options
    text: str | None
    decision: DecisionName | PermissionDecision | None
    reason: str | None  # of a denial; the agent is told


@with_config(extra="forbid")
class SessionOptions(TypedDict, total=False):
    """How a session's agent works; what is left out is as the server has it."""

    provider: str | None  # the agent program, such as claude
    model: str | None
    folder: str | None  # the part of the project that it works in
    land: LandName | Land  # what becomes of a run's changes when it succeeds
    profile: ProfileName | ExecutionProfile  # what it asks a person for
    title: str
    options: Mapping[str, Any]  # for the agent program


@dataclass(frozen=True, kw_only=True, slots=True)
class Received(Generic[Item]):
    """An item of a stream."""

    cursor: str  # where to go on after this item
    item: Item


def command_fields(command: str | Sequence[str]) -> dict[str, Any]:
    """A text is for a shell; a sequence is a program and its arguments."""
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}
