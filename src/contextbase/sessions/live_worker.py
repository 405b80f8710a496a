"""What a session has on this machine while it works: its folder, its home, and its sandbox with the executor in it."""

import os
from dataclasses import dataclass
from pathlib import Path

from contextbase.sandbox.model import SandboxId
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sessions.executor_link import ExecutorLink
from contextbase.sessions.model import SessionId
from contextbase.workspaces.model import Owner
from contextbase.workspaces.refresh.service import Refreshed
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["LiveWorker", "SessionFolder", "make_home"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionFolder:
    """A session's folder, up to date."""

    record: WorkspaceRecord
    refreshed: Refreshed | None  # what others changed since its last turn; None: it is new
    is_restored: bool  # from a snapshot
    runtime_version: str | None = None  # of the manifest that it is composed by; None: it is not of an app


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveWorker:
    session_id: SessionId
    sandbox_id: SandboxId
    driver: SandboxDriver
    link: ExecutorLink
    folders: tuple[Path, ...]  # of this machine that its programs can fill


def make_home(home: Path, owner: Owner) -> bool:
    """False: it was there."""
    is_new = not home.exists()
    home.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)
    if owner != Owner.of_this_process():
        os.chown(home, owner.uid, owner.gid)
    return is_new
