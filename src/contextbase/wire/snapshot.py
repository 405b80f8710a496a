"""Bodies of refs and tags."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from contextbase.wire.answer import AnswerView
from contextbase.wire.commit import ProjectName

__all__ = ["LONGEST_REF", "SnapshotView", "TagCreate", "TagPage", "TagView"]

LONGEST_REF = 120

Ref = Annotated[
    str,
    Field(
        max_length=LONGEST_REF,
        description="A snapshot: a seq, head, head~3, a time such as 2026-01-31T12:00:00Z, or a tag.",
    ),
]


class SnapshotView(BaseModel):
    seq: int


class TagCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    name: str = Field(max_length=100, description="Letters, digits and ._- , starting with a letter; not 'head'.")
    ref: Ref = "head"
    message: str = Field(default="", max_length=4096)


class TagView(AnswerView):
    name: str
    seq: int
    message: str
    created_by: str = Field(description="Such as agent:indexer.")
    created_at: datetime


class TagPage(BaseModel):
    tags: list[TagView]
    next_after: str | None = Field(description="Pass as `after` for the next page; null on the last.")
