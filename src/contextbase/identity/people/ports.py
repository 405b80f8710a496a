"""What has to happen elsewhere when somebody may do less than before."""

from typing import Protocol

__all__ = ["Narrowing"]


class Narrowing(Protocol):
    async def narrowed(self) -> None:
        """Called after somebody was disabled or lost a role, and now and then. Stops what works on behalf of people
        who may not do that any more; calling it again does nothing."""
        ...
