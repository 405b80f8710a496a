"""Workers on a plain folder: each works on a copy of its own, and what it did is merged back. Needs no server."""

from contextbase.limits import Limit, ResourceLimits
from contextbase.worker.model import (
    CopyResult,
    FileResult,
    Outcome,
    SandboxEvent,
    SandboxEventKind,
    SandboxInfo,
    SandboxState,
    SandboxStats,
    SyncResult,
)
from contextbase.worker.places import Places
from contextbase.worker.running import RunResult
from contextbase.worker.sandbox import WorkerSandbox

__all__ = [
    "CopyResult",
    "FileResult",
    "Limit",
    "Outcome",
    "Places",
    "ResourceLimits",
    "RunResult",
    "SandboxEvent",
    "SandboxEventKind",
    "SandboxInfo",
    "SandboxState",
    "SandboxStats",
    "SyncResult",
    "WorkerSandbox",
]
