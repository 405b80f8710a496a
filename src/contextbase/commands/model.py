"""What is asked for when a command is to be run, and what is told while it runs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path, PurePosixPath

from contextbase.errors import InvalidInput
from contextbase.identity.model import Principal
from contextbase.ids import ProjectId, TreePath
from contextbase.limits import ResourceLimits
from contextbase.sandbox.model import Command, CommandOutcome, Network, Output, SandboxId
from contextbase.vocabulary import CommitWhen
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.repository import WorkspaceRecord
from contextbase.workspaces.service import Completed

__all__ = [
    "CommitWhen",
    "KeptWorkspace",
    "RunRequest",
    "RunStep",
    "SandboxEquipment",
    "SandboxRecord",
    "Started",
    "lowered",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    command: Command
    given: bytes | None = None  # what it reads
    limits: ResourceLimits
    network: Network = Network.NONE
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: TreePath | None = None  # what of the project its workspace has; None: all
    commit_when: CommitWhen = CommitWhen.SUCCESS
    wish: Wish
    keeps_log: bool = False  # in the workspace; see program_log


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    workspace: WorkspaceRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptWorkspace:
    """The workspace is open still, with what the command changed in it."""

    workspace: WorkspaceRecord
    because: str


RunStep = Started | Output | CommandOutcome | Completed | KeptWorkspace
"""In this order; at the end one of the last two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxEquipment:
    """What a sandbox has beside the workspace."""

    image: str | None = None  # of Docker; None: the machine's
    home: Path | None = None  # a folder of this machine that is HOME inside; None: an empty one that goes with it
    read_only: tuple[tuple[Path, PurePosixPath], ...] = ()  # folders of this machine, and where they are inside
    holds_files: bool = False  # /workspace is the sandbox's own, and not the workspace's folder


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxRecord:
    """A sandbox on an agent's workspace, as the database knows it."""

    id: SandboxId
    workspace_id: WorkspaceId
    project_id: ProjectId
    principal: Principal  # the agent whose workspace it is
    node: str
    driver: str
    network: Network
    limits: ResourceLimits
    created_at: datetime
    seen_at: datetime


def lowered(most: ResourceLimits, asked: Mapping[str, float | None]) -> ResourceLimits:
    """`most` with what was asked for in its place; `InvalidInput` when that is more."""
    known = {each.name for each in fields(ResourceLimits)}
    given = {name: value for name, value in asked.items() if name in known and value is not None}
    for name, value in given.items():
        allowed = getattr(most, name)
        if allowed is not None and value > allowed:
            raise InvalidInput(f"{name} can be {allowed} at the most on this server, not {value}.")
    return ResourceLimits(**asdict(most) | given)
