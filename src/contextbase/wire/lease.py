"""Bodies about leases."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from contextbase.wire.commit import MOST_SEQ, ProjectName

__all__ = [
    "LONGEST_WAIT_SECONDS",
    "LeaseAcquire",
    "LeaseCheck",
    "LeaseHeartbeat",
    "LeasePage",
    "LeaseToken",
    "LeaseView",
    "LeasesReleased",
]

LONGEST_WAIT_SECONDS = 60.0

LeaseToken = Annotated[int, Field(ge=1, le=MOST_SEQ, description="What names a lease; a later one has a larger token.")]


class LeaseAcquire(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    pattern: str = Field(max_length=1024, description="A path, or a pattern such as src/**; nothing needs to be there.")
    worker: str | None = Field(
        default=None,
        max_length=100,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]*$",
        description="Which of your workers it is for; what one has is in the way of the others.",
    )
    wait: float = Field(
        default=0.0, ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait while somebody else has it."
    )
    key: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]*$",
        description="Idempotency: asked for again with the same key, it is the same lease, renewed.",
    )


class LeaseHeartbeat(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName


class LeaseView(BaseModel):
    token: LeaseToken
    pattern: str = Field(description="Or a wider one, if names in it may be hidden from you.")
    owner: str = Field(description="The principal, such as agent:indexer, with a worker: agent:indexer/3.")
    acquired_at: datetime
    expires_at: datetime = Field(description="By the server's clock, unless a heartbeat renews it.")
    ttl_seconds: float = Field(description="How long it lasts without a heartbeat.")


class LeasePage(BaseModel):
    leases: list[LeaseView] = Field(description="Oldest first.")
    next_after: int | None = Field(description="Pass as `after` for the next page; null on the last.")


class LeaseCheck(BaseModel):
    path: str
    locked: bool
    lease: LeaseView | None = Field(description="One that overlaps.")


class LeasesReleased(BaseModel):
    released: int
