"""What streams ask of layers above them."""

from typing import Protocol
from uuid import UUID

from contextbase.identity.model import Caller

__all__ = ["SessionAuthorizer", "WorkspaceAuthorizer"]


class SessionAuthorizer(Protocol):
    async def may_read(self, caller: Caller, session_id: UUID) -> bool:
        """Whether the caller may read the session's events; False also for a session that does not exist."""
        ...


class WorkspaceAuthorizer(Protocol):
    async def may_read(self, caller: Caller, workspace_id: UUID) -> bool:
        """Whether the caller may see what is in the workspace; False also for one that does not exist."""
        ...
