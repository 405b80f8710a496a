"""Bodies of commits and uploads."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contextbase.vocabulary import PlaceKind, Reason
from contextbase.wire.project import NAME_OR_ID

__all__ = [
    "CONTENT_HASH",
    "MOST_SEQ",
    "ChangeBody",
    "ChangeView",
    "CommitCreate",
    "CommitView",
    "ConflictPlace",
    "ConflictSide",
    "ConflictView",
    "Epoch",
    "ProjectName",
    "SeqNumber",
    "UploadView",
]

CONTENT_HASH = "^[0-9a-f]{64}$"
MOST_SEQ = 2**53 - 1

ProjectName = Annotated[str, Field(description="The project's name or id.", max_length=100, pattern=NAME_OR_ID)]
SeqNumber = Annotated[int, Field(ge=0, le=MOST_SEQ)]
Epoch = Annotated[
    UUID | None,
    Field(description="The epoch of the checkout your seqs are from; refused if a restore has renewed it since."),
]


class ChangeBody(BaseModel):
    """One change. A write has exactly one of `text`, `base64` and `hash`; a rename may have one."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["write", "delete", "rename", "mkdir"]
    path: str = Field(max_length=2048)
    target: str | None = Field(default=None, max_length=2048, description="Where a rename goes.")
    kind: Literal["file", "symlink"] = Field(default="file", description="A symlink's content is its target.")
    executable: bool | None = Field(default=None, description="Null: as it was.")
    mime: str = Field(
        default="",
        max_length=200,
        pattern=r"^$|^[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+$",
        description="Empty: from the content and the name.",
    )
    text: str | None = Field(default=None, description="The content, as text.")
    base64: str | None = Field(default=None, description="The content, as base64.")
    hash: str | None = Field(
        default=None, pattern=CONTENT_HASH, description="sha256 of content you uploaded, or of a version you may read."
    )
    base: SeqNumber | None = Field(
        default=None, description="The snapshot this change was made from; null: the commit's `base_seq`."
    )

    base_version: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="Instead of `base`: the number of the version at `path` that this change was made from; 0: none.",
    )

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if self.base is not None and self.base_version is not None:
            raise ValueError("give base or base_version, not both")
        given = sum(content is not None for content in (self.text, self.base64, self.hash))
        if given > 1:
            raise ValueError("give one of text, base64 and hash")
        if self.action == "write" and not given:
            raise ValueError("a write needs text, base64 or hash")
        return self


class CommitCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    changes: list[ChangeBody] = Field(min_length=1, max_length=10_000)
    base_seq: SeqNumber | None = Field(
        default=None,
        description="The snapshot the changes were made from, for those that do not name their own `base`.",
    )
    epoch: Epoch = None
    message: str = Field(default="", max_length=10_000)
    key: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Idempotency: the same key and request has the effect of one. Also as header Idempotency-Key.",
    )
    atomic: bool = Field(default=False, description="All changes, or none.")
    run: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The execution it belongs to, by a name of yours: what was done in it can be undone in one go.",
    )
    lease: int | None = Field(
        default=None,
        ge=1,
        le=MOST_SEQ,
        description="The token of a lease of yours: the commit is refused (409, lease_lost) if you do not hold it any "
        "more.",
    )

    @model_validator(mode="after")
    def _every_change_has_a_base(self) -> Self:
        if self.base_seq is None and any(
            change.base is None and change.base_version is None for change in self.changes
        ):
            raise ValueError("give base_seq, or base or base_version with every change: what it was made from")
        return self


class ConflictPlace(BaseModel):
    kind: PlaceKind
    at: str


class ConflictSide(BaseModel):
    """Text, or base64 where it is none."""

    text: str | None = None
    base64: str | None = None


class ConflictView(BaseModel):
    """One contested place. A side is null where the thing does not exist on that side."""

    place: ConflictPlace
    reason: Reason
    base: ConflictSide | None
    ours: ConflictSide | None = Field(description="The head's.")
    theirs: ConflictSide | None = Field(description="The writer's.")
    suggestion: ConflictSide | None = Field(description="What might be meant; never applied by itself.")


class ChangeView(BaseModel):
    path: str = Field(description="As asked.")
    status: Literal["written", "merged", "unchanged", "superseded", "in_review", "refused"]
    result_path: str | None = Field(description="Where it stands now, if anywhere.")
    node_id: UUID | None
    number: int | None = Field(description="The version that holds the result.")
    strategy: str | None = Field(description="What decided a merge.")
    notes: list[str]
    side_version_id: UUID | None = Field(
        description="Where your content is kept when it is not, or not all, in the head."
    )
    review_id: UUID | None
    conflicts: list[ConflictView]
    code: str | None = Field(description="Of a refusal.")
    reason: str | None


class CommitView(BaseModel):
    seq: int = Field(description="Of this commit; when nothing was to be done, the head's.")
    committed: bool = Field(description="False: no change needed a commit.")
    changes: list[ChangeView] = Field(
        description="One for each change, in order; for a change of a folder, one for each entry in it."
    )


class UploadView(BaseModel):
    hash: str = Field(description="Name it in a commit.")
    size: int
