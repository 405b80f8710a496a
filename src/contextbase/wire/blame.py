"""Bodies of blames."""

from uuid import UUID

from pydantic import BaseModel, Field

from contextbase.wire.answer import AnswerView
from contextbase.wire.tree import CommitAuthorView

__all__ = ["BlameView", "LinesView", "OriginView", "PartView"]


class OriginView(AnswerView):
    number: int = Field(description="The version of the file.")
    seq: int
    path: str = Field(description="As it was then.")
    author: CommitAuthorView


class LinesView(BaseModel):
    """Lines that stand together and come from one version."""

    first: int = Field(description="Counted from 1.")
    lines: list[str]
    number: int = Field(description="One of the origins.")


class PartView(BaseModel):
    """A value, or a notebook's cell."""

    pointer: str
    number: int = Field(description="One of the origins.")


class BlameView(BaseModel):
    path: str
    node_id: UUID
    number: int = Field(description="The version that was looked at.")
    seq: int
    origins: list[OriginView] = Field(description="Every version that is named below, by number.")
    lines: list[LinesView]
    parts: list[PartView]
    next_line: int | None = Field(description="Pass as `first` for the next lines; null at the end.")
