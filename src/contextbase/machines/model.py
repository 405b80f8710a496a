"""A machine, as the database knows it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

__all__ = ["NO_DRIVER", "Capabilities", "MachineRecord", "MachineState"]

NO_DRIVER: Final = "unavailable"
"""The sandbox driver of a machine that cannot run commands."""


class MachineState(StrEnum):
    RUNNING = "running"
    DRAINING = "draining"  # it runs, and takes no new workspaces
    STOPPED = "stopped"  # it was stopped in an orderly way
    LOST = "lost"  # it was not seen for too long: it crashed, hangs, or cannot reach the database


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a machine found out about itself; None: not tried yet."""

    workspace_backend: str | None = None
    sandbox_driver: str | None = None  # NO_DRIVER: none works there


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineRecord:
    id: UUID
    name: str
    process: UUID  # a new one at each start
    address: str | None  # where other servers reach it; None: they cannot
    version: str
    capabilities: Capabilities
    state: MachineState
    is_draining: bool  # also when it does not run: then it will not take workspaces when it is back
    workspaces: int  # open ones
    started_at: datetime
    seen_at: datetime

    @property
    def is_alive(self) -> bool:
        return self.state in (MachineState.RUNNING, MachineState.DRAINING)
