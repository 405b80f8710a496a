"""Workers on a plain folder: each works on a copy of its own, and what it did is merged back. Needs no server."""

from contextbase.limits import Limit, ResourceLimits
from contextbase.standalone.command import RunResult
from contextbase.standalone.model import (
    CopyResult,
    FileResult,
    SandboxEvent,
    SandboxEventKind,
    StandaloneInfo,
    StandaloneState,
    StandaloneStats,
    SyncOutcome,
    SyncResult,
)
from contextbase.standalone.sandbox import WorkerSandbox
from contextbase.standalone.sandbox_folders import SandboxFolders

__all__ = [
    "CopyResult",
    "FileResult",
    "Limit",
    "ResourceLimits",
    "RunResult",
    "SandboxEvent",
    "SandboxEventKind",
    "SandboxFolders",
    "StandaloneInfo",
    "StandaloneState",
    "StandaloneStats",
    "SyncOutcome",
    "SyncResult",
    "WorkerSandbox",
]
