"""Bodies about tokens."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from contextbase.vocabulary import Action, PrincipalKind
from contextbase.wire.project import NAME_OR_ID

__all__ = ["TokenCreate", "TokenCreated", "TokenPage", "TokenRevoked", "TokenView"]

ActionName = Literal["read", "write", "admin"]


class TokenCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    principal: str = Field(description="Whom the token is for; made if new.", max_length=100)
    kind: Literal["user", "agent", "adapter"] = "agent"
    name: str = Field("", description="What it is for; default: the principal's name.", max_length=200)
    actions: list[ActionName] = Field(default=["read", "write"], min_length=1, max_length=3)
    days: Annotated[float, Field(gt=0, le=3650)] | None = Field(
        None, description="How long it lives, at most as long as your own token; null: 90, or as long as that."
    )
    project: str | None = Field(
        None, description="Name or id: only for this project.", max_length=100, pattern=NAME_OR_ID
    )
    path: str | None = Field(None, description="Only below this path of the project.", max_length=1024)


class TokenView(BaseModel):
    id: UUID
    principal: str
    kind: PrincipalKind
    name: str
    actions: list[Action]
    project_id: UUID | None
    path: str | None
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class TokenCreated(TokenView):
    secret: str = Field(description="The token itself; shown this once.")


class TokenPage(BaseModel):
    tokens: list[TokenView]
    next_before: UUID | None = Field(description="Pass as `before` for the next page; null on the last.")


class TokenRevoked(BaseModel):
    id: UUID
    revoked_now: bool = Field(description="False when it was revoked before.")
