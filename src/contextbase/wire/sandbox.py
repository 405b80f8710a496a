"""Bodies of runs and sandboxes: commands of agents, and what they come to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contextbase.vocabulary import Limit, Network, OutputStream, SandboxState
from contextbase.wire.commit import ProjectName
from contextbase.wire.problem import Problem
from contextbase.wire.workspace import AgentName, WorkspaceCompleteView, WorkspaceFolder, WorkspaceView

__all__ = [
    "AttachedItem",
    "CommandBody",
    "CommandCreate",
    "CommandItem",
    "CommandView",
    "CommitWhenName",
    "CompletedItem",
    "EndedItem",
    "ExecItem",
    "ExecView",
    "FailedItem",
    "KeptItem",
    "LimitsBody",
    "NetworkName",
    "OutcomeView",
    "OutputItem",
    "PipeControl",
    "PipeItem",
    "PipedOutput",
    "SandboxCreate",
    "SandboxPage",
    "SandboxView",
    "StartedItem",
    "TakenItem",
    "TerminalControl",
    "TerminalSizeBody",
]

NetworkName = Literal["none", "loopback"]
CommitWhenName = Literal["success", "always", "never"]

# How long and how many: no more than a request has room for.
_Variable = Annotated[str, Field(pattern=r"^[^=\x00]+$")]
_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class LimitsBody(BaseModel):
    """Less than the server's own; what is left out is as the server has it."""

    model_config = ConfigDict(extra="forbid")

    max_memory: int | None = Field(default=None, ge=1 << 24, le=1 << 50, description="Bytes.")
    max_cpu: float | None = Field(default=None, gt=0, le=100_000, description="Percent of one processor's time.")
    max_processes: int | None = Field(default=None, ge=2, le=1 << 22)
    max_execution_time: float | None = Field(default=None, gt=0, le=10_000_000, description="Seconds.")
    max_output: int | None = Field(default=None, ge=1, le=1 << 50, description="Bytes.")
    max_disk: int | None = Field(default=None, ge=1, le=1 << 50, description="Bytes added to the folder.")


class CommandBody(BaseModel):
    """Either a text for a shell, or a program and its arguments."""

    model_config = ConfigDict(extra="forbid")

    command: _Text | None = Field(default=None, min_length=1, description="For bash where there is one, else for sh.")
    argv: list[_Text] | None = Field(default=None, min_length=1)
    environment: dict[_Variable, _Text] = Field(default_factory=dict)
    cwd: str | None = Field(
        default=None,
        max_length=4096,
        pattern=r"^[^\x00]+$",
        description="Relative to /workspace. Left out: /workspace, or in a sandbox where the last command went to.",
    )
    stdin: str | None = Field(default=None, description="What it reads; left out: nothing.")
    timeout: float | None = Field(default=None, gt=0, le=10_000_000, description="Seconds; less than the limits say.")
    log: bool = Field(
        default=False,
        description="Keep what it prints as `.logs/PROGRAM/TIME.log` in the workspace; register what it made there.",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.command is None) == (self.argv is None):
            raise ValueError("say either 'command' or 'argv'")
        return self


class CommandCreate(CommandBody):
    project: ProjectName
    agent: AgentName | None = Field(
        default=None, description="Who runs it; left out: an agent of its own if you may make agents, else you."
    )
    folder: WorkspaceFolder = None
    limits: LimitsBody = Field(default_factory=LimitsBody)
    network: NetworkName = "none"
    commit: CommitWhenName = Field(default="success", description="When what it changed is committed.")
    message: str = Field(default="", max_length=10_000)
    run: str | None = Field(default=None, min_length=1, max_length=200, description="A name of yours for it.")


class OutcomeView(BaseModel):
    exit_code: int | None = Field(description="null: a signal ended it.")
    signal: int | None
    stopped_by: Limit | None = Field(description="The limit it went over.")
    forks_refused: bool = Field(description="It wanted more processes than its limit, and went on without.")
    leftovers_of: list[str] = Field(
        default=[],
        description="Commands that had ended and left so many processes running that the sandbox had no room for more; "
        "these processes were ended.",
    )
    slowed_down: bool = Field(description="It wanted more of the processor than its limit.")
    seconds: float
    cpu_seconds: float | None
    peak_memory: int | None = Field(description="Bytes.")

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.stopped_by is None


class StartedItem(BaseModel):
    type: Literal["started"] = "started"
    workspace: WorkspaceView


class OutputItem(BaseModel):
    """A piece of output: as text where it is UTF-8, else in base64."""

    type: Literal["output"] = "output"
    stream: OutputStream
    text: str | None = None
    base64: str | None = None


class EndedItem(BaseModel):
    type: Literal["ended"] = "ended"
    outcome: OutcomeView


class AttachedItem(BaseModel):
    """The first message of a session's terminal."""

    type: Literal["attached"] = "attached"
    replayed: int = Field(description="Bytes that follow and were shown before.")


class CompletedItem(BaseModel):
    type: Literal["completed"] = "completed"
    completed: WorkspaceCompleteView


class KeptItem(BaseModel):
    type: Literal["kept"] = "kept"
    workspace: WorkspaceView
    because: str


class FailedItem(BaseModel):
    """Something went wrong after the first item was sent; what had been changed is in the workspace still."""

    type: Literal["failed"] = "failed"
    problem: Problem


CommandItem = Annotated[
    StartedItem | OutputItem | EndedItem | CompletedItem | KeptItem | FailedItem, Field(discriminator="type")
]
ExecItem = Annotated[OutputItem | EndedItem | FailedItem, Field(discriminator="type")]


class ExecView(BaseModel):
    outcome: OutcomeView
    stdout: str = Field(description="The end of it, if it is long; what is not UTF-8 as \\xNN.")
    stderr: str
    truncated: bool = Field(description="There was more output than this.")


class CommandView(ExecView):
    workspace: WorkspaceView
    completed: WorkspaceCompleteView | None = Field(description="What became of its changes; null: kept.")
    kept_because: str | None = Field(description="Why the workspace is open still, with the changes in it.")


class SandboxCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    agent: AgentName | None = Field(default=None, description="Whose workspace it is on; left out: your own.")
    limits: LimitsBody = Field(default_factory=LimitsBody)
    network: NetworkName = "none"
    environment: dict[_Variable, _Text] = Field(default_factory=dict)


class SandboxView(BaseModel):
    id: UUID
    workspace_id: UUID
    project_id: UUID
    agent: str = Field(description="Whose workspace it is on, for example agent:indexer.")
    machine: str = Field(description="The machine that runs it.")
    driver: str = Field(description="bubblewrap, docker or none.")
    network: Network
    limits: LimitsBody
    created_at: datetime
    seen_at: datetime = Field(description="When a command last ran in it, to the minute.")
    state: SandboxState | None = Field(default=None, description="Not in lists.")
    memory: int | None = Field(default=None, description="Bytes in use now, if it runs.")
    processes: int | None = None
    cpu_seconds: float | None = None


class SandboxPage(BaseModel):
    sandboxes: list[SandboxView]
    next_before: UUID | None = Field(description="Pass as `before` for the next page; null on the last.")


class TerminalSizeBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rows: int = Field(ge=1, le=9999)
    columns: int = Field(ge=1, le=9999)


class PipeControl(BaseModel):
    """A text message to the socket of a command, after the first one; binary ones are what it reads."""

    model_config = ConfigDict(extra="forbid")

    end_input: Literal[True]


class TakenItem(BaseModel):
    """So much more of the input is with the command. Whoever sends much waits for it."""

    type: Literal["taken"] = "taken"
    bytes: int


PipeItem = Annotated[TakenItem | EndedItem | FailedItem, Field(discriminator="type")]
"""A text message from the socket of a command."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PipedOutput:
    """A binary message from the socket of a command: the number of the stream in one byte, and what was written."""

    stream: OutputStream
    data: bytes

    def encoded(self) -> bytes:
        return (b"\x01" if self.stream is OutputStream.STDOUT else b"\x02") + self.data

    @classmethod
    def decoded(cls, message: bytes) -> Self:
        """Raises `ValueError`."""
        if message[:1] not in (b"\x01", b"\x02"):
            raise ValueError("the message names no stream")
        return cls(stream=OutputStream.STDOUT if message[:1] == b"\x01" else OutputStream.STDERR, data=message[1:])


class TerminalControl(BaseModel):
    """A text message to a terminal's socket; binary ones are what is typed."""

    model_config = ConfigDict(extra="forbid")

    resize: TerminalSizeBody
