"""Bodies about the server itself and the caller."""

from typing import Literal

from pydantic import BaseModel

from contextbase.vocabulary import Action, PrincipalKind

__all__ = ["Health", "Me", "Readiness", "ServerVersion"]


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    status: Literal["ready", "not_ready"]
    database: str  # "ok", or the code of what is wrong
    blobs: str


class ServerVersion(BaseModel):
    name: Literal["contextbase"] = "contextbase"
    version: str
    api: Literal["v1"] = "v1"


class Me(BaseModel):
    principal: str
    kind: PrincipalKind
    is_owner: bool
    token: str
    actions: list[Action]
