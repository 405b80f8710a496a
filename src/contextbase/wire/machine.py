"""Bodies about the machines of a database."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

__all__ = ["MachineForgotten", "MachinePage", "MachineStateName", "MachineView"]

MachineStateName = Literal["running", "draining", "stopped", "lost"]


class MachineView(BaseModel):
    id: UUID
    name: str
    state: MachineStateName = Field(description="lost: it was not seen for too long.")
    is_draining: bool = Field(description="New workspaces are not made there, also when it is started again.")
    address: str | None = Field(description="Where other servers reach it; null: they cannot.")
    version: str
    workspace_backend: str | None = Field(description="How it makes folders; null: not tried yet.")
    sandbox_driver: str | None = Field(description="What commands run in, or unavailable; null: not tried yet.")
    workspaces: int = Field(description="Open ones.")
    started_at: datetime
    seen_at: datetime


class MachinePage(BaseModel):
    machines: list[MachineView]


class MachineForgotten(BaseModel):
    name: str
    workspaces_given_up: int
