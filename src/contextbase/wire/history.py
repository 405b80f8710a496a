"""Bodies of the log and the audit trail."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field

from contextbase.vocabulary import GrantSource, Kind, WayIn
from contextbase.wire.answer import CONTENT_HASH, SIDE_VERSION_ID, WAY_IN, AnswerView, HashText
from contextbase.wire.commit import SeqNumber
from contextbase.wire.tree import CommitAuthorView

__all__ = [
    "AuditPageView",
    "AuditQuery",
    "AuditRecordView",
    "LogChangeView",
    "LogEntryView",
    "LogPageView",
    "OperatorTypeName",
]


def _no_number(value: object) -> object:
    """Pydantic takes numbers for seconds since 1970; the document speaks of times as text."""
    if isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9.]+\s*", value)):
        raise ValueError("a time is written as in 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_no_number)]
OperatorTypeName = Literal["web_ui", "agent", "external_agent", "saas_adapter", "api", "system"]


class LogChangeView(AnswerView):
    what: Literal["added", "changed", "renamed", "deleted", "superseded", "in_review"]
    path: str
    path_before: str | None = Field(description="Of a rename.")
    node_id: UUID
    number: int | None
    kind: Kind
    hash: HashText | None = Field(validation_alias=CONTENT_HASH)
    size: int
    side_version_id: UUID | None = Field(validation_alias=SIDE_VERSION_ID)


class LogEntryView(AnswerView):
    seq: int
    commit_id: UUID
    author: CommitAuthorView
    run: str | None = Field(description="The execution it belongs to, as its writer named it.")
    parents: list[int] = Field(description="The commits that its changes were made from, newest first.")
    forks: list[int] = Field(
        description="Of the parents, those from which it forked: what its writer saw was overtaken, and joined here."
    )
    changes: list[LogChangeView] = Field(description="The first 100.")
    change_count: int


class LogPageView(BaseModel):
    commits: list[LogEntryView]
    next_before: int | None = Field(
        description="Pass as `before` for the next page; null on the last. A page may be short and still have a next."
    )


class AuditQuery(BaseModel):
    """What to look for in the audit trail; null: anything."""

    principal: str | None = Field(default=None, max_length=120, description="Such as agent:indexer, or indexer.")
    action: str | None = Field(default=None, max_length=100, pattern="^[a-z._]+$", description="Such as commit.")
    path: str | None = Field(default=None, max_length=2048, description="And what is below it.")
    since: Moment | None = None
    until: Moment | None = Field(default=None, description="Not included.")
    node_id: UUID | None = Field(default=None, description="The file's identity, which it keeps when it is renamed.")
    operator_type: OperatorTypeName | None = Field(default=None, description="The way in.")
    first_seq: SeqNumber | None = None
    last_seq: SeqNumber | None = None


class AuditRecordView(AnswerView):
    number: int = Field(description="Its place in the project's chain.")
    at: datetime
    operator_type: WayIn = Field(validation_alias=WAY_IN)
    principal: str
    grant: GrantSource | None = Field(default=None, description="What allowed it; null for old rows of the system.")
    token_id: UUID | None
    on_behalf_of: str | None = Field(default=None, description="Who had the principal do it, if somebody else did.")
    action: str
    path: str | None = Field(description="As it was then.")
    node_id: UUID | None
    base_seq: int | None
    seq: int | None
    old_hash: str | None
    new_hash: str | None
    merge_strategy: str | None = Field(
        description="How it was merged: a type of file, or a strategy; manual, auto_merge or resolver for a review."
    )
    summary: str = Field(description="A sentence: who did what, how it was settled, and why.")
    origin: str
    trace_id: str
    details: dict[str, Any]
    mac: str | None = Field(description="Its link in the chain; null where something you may not see was left out.")


class AuditPageView(AnswerView):
    records: list[AuditRecordView]
    next_before: int | None = Field(
        description="Pass as `before` for the next page; null on the last. A page may be short and still have a next."
    )
