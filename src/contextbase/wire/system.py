"""Bodies about the server itself and the caller."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from contextbase.vocabulary import Action, PrincipalKind

__all__ = [
    "ChoreView",
    "ChoresView",
    "ExaminationView",
    "FindingView",
    "Health",
    "LeaderView",
    "Me",
    "Readiness",
    "ServerVersion",
]


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


class LeaderView(BaseModel):
    """The server that does the shared chores, or did so last."""

    server: str
    since: datetime
    term: int
    is_alive: bool


class ChoreView(BaseModel):
    """A shared chore's last run."""

    name: str
    server: str
    every_seconds: float
    started_at: datetime
    ended_at: datetime
    error: str | None
    failures: int  # in a row
    next_at: datetime


class ChoresView(BaseModel):
    leader: LeaderView | None
    chores: list[ChoreView]


class FindingView(BaseModel):
    """One thing that was looked at."""

    name: str  # such as "database"
    answer: Literal["yes", "no", "broken"]  # no: contextbase works without it; broken: it does not
    detail: str
    advice: str  # what to do about it; empty: nothing


class ExaminationView(BaseModel):
    """What works on the machine of the server that answers, as `contextbase doctor` tells it there."""

    machine: str
    checked_at: datetime
    findings: list[FindingView]
