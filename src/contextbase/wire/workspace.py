"""Bodies of workspaces: an agent's private folder, and what comes back from it."""

from datetime import datetime
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from contextbase.vocabulary import FolderChangeKind, Kind, ScanProblem, WorkspaceState
from contextbase.wire.commit import ChangeView, ProjectName
from contextbase.wire.diff import ComparedView
from contextbase.wire.snapshot import LONGEST_REF

__all__ = [
    "AgentName",
    "ArrivedView",
    "ConflictsInName",
    "IgnoredView",
    "KeptName",
    "KeptView",
    "PendingChangeView",
    "RefreshedView",
    "ReportedView",
    "SharedFolderView",
    "WorkspaceChangeView",
    "WorkspaceCommit",
    "WorkspaceCommitView",
    "WorkspaceCompleteView",
    "WorkspaceCreate",
    "WorkspaceDiffPage",
    "WorkspaceDiffView",
    "WorkspaceFolder",
    "WorkspaceName",
    "WorkspacePage",
    "WorkspaceRefreshView",
    "WorkspaceStateName",
    "WorkspaceStatusView",
    "WorkspaceView",
]

ConflictsInName = Literal["review", "files"]
KeptName = Literal[
    "conflict",
    "deleted_by_others",
    "deleted_by_you",
    "renamed_by_you",
    "policy",
    "too_large",
    "reported",
    "in_use",
    "in_the_way",
    "no_room",
]
WorkspaceStateName = Literal["open", "completed", "abandoned", "lost"]

_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PRINCIPAL: Final = "(user|agent|adapter):[A-Za-z0-9][A-Za-z0-9._@-]{0,99}"

AgentName = Annotated[str, Field(description="For example agent:indexer, or indexer.", min_length=1, max_length=120)]
WorkspaceName = Annotated[
    str,
    Field(
        description="A workspace's id; or agent:NAME for the agent's workspace in `project`; or `me` for your own.",
        pattern=f"^(me|{_UUID}|{_PRINCIPAL})$",
    ),
]


WorkspaceFolder = Annotated[
    Annotated[str, Field(min_length=1, max_length=2048)] | None,
    Field(description="A folder of the project, such as docs: all that the workspace has, as its top; null: all."),
]


class WorkspaceCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    agent: AgentName | None = Field(default=None, description="Whose it is; null: yours. Another's needs 'admin'.")
    at: Annotated[int, Field(ge=0)] | Annotated[str, Field(max_length=LONGEST_REF)] | None = Field(
        default=None, description="The snapshot to start from: a seq, or a ref (head~3, a time, a tag); null: the head."
    )
    folder: WorkspaceFolder = None
    meta: bool = Field(
        default=False, description="Show what is known about its files as JSON in `.meta`, to be read alone."
    )


class WorkspaceCommit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(default="", max_length=10_000)
    run: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The execution it belongs to, by a name of yours: what was done in it can be undone in one go.",
    )
    conflicts_in: ConflictsInName = Field(
        default="review",
        description="Where the sides of a conflict are shown: in the review queue alone, or also as files in "
        ".contextbase/conflicts/ of the folder, if that stays.",
    )
    allow: list[Annotated[str, Field(min_length=1, max_length=1024)]] = Field(
        default_factory=list,
        max_length=1000,
        description="Paths or patterns of files to commit though they look like credentials.",
    )


class WorkspaceView(BaseModel):
    id: UUID
    project_id: UUID
    agent: str = Field(description="Whose it is, for example agent:indexer.")
    path: str = Field(description="Where the agent works, on `machine`.")
    folder: str | None = Field(
        default=None,
        description="What of the project it has as its top; its paths are those in there. null: all.",
    )
    meta: bool = Field(default=False, description="Whether `.meta` shows what is known about its files.")
    base_seq: int = Field(description="The snapshot it was made from.")
    shown_seq: int = Field(description="The snapshot it was last refreshed to; `base_seq` if that never happened.")
    epoch: UUID = Field(description="The epoch of both.")
    backend: str = Field(description="How the folder is made: overlay or copy.")
    machine: str = Field(description="The machine that holds the folder.")
    state: WorkspaceState
    commits: int = Field(description="How many were made from it so far.")
    created_at: datetime
    seen_at: datetime = Field(description="When it was last asked for or committed, to the minute.")
    ended_at: datetime | None


class WorkspacePage(BaseModel):
    workspaces: list[WorkspaceView]
    next_before: UUID | None = Field(description="Pass as `before` for the next page; null on the last.")


class ReportedView(BaseModel):
    """Something in the folder that cannot be committed as it is. It stays where it is."""

    name: str = Field(description="Its path; bytes that are not UTF-8 as \\xNN.")
    problem: ScanProblem
    reason: str


class IgnoredView(BaseModel):
    """A new file or folder that an ignore rule takes out."""

    path: str = Field(description="A folder ends in /, and stands for all that is in it.")
    source: str = Field(description="The ignore file that has the rule; built-in: contextbase's own.")
    line: int | None = Field(description="In the ignore file.")
    pattern: str


class PendingChangeView(BaseModel):
    """What differs in the folder from what it was made from, or from its last commit."""

    path: str
    change: FolderChangeKind
    renamed_from: str | None
    kind: Kind = Field(description="Of what stands there.")
    size: int


class WorkspaceStatusView(BaseModel):
    workspace: WorkspaceView
    changes: list[PendingChangeView]
    reported: list[ReportedView]
    ignored: list[IgnoredView]
    notes: list[str] = Field(description="Sentences, such as that an ignore file is too large.")
    left: list[str] = Field(description="What else would go with the folder, such as versions that were refused.")


class ArrivedView(BaseModel):
    """What others changed, as it is in the folder now."""

    path: str
    change: FolderChangeKind = Field(description="Never `renamed`: that is a deletion and a creation.")


class KeptView(BaseModel):
    """A path that others changed, and that is in the folder as the agent has it. The next commit of it is merged with
    their change."""

    path: str
    code: KeptName
    reason: str


class RefreshedView(BaseModel):
    seq: int = Field(description="The snapshot that the folder shows now, but for the agent's own changes.")
    since: int = Field(description="The one it showed before.")
    arrived: list[ArrivedView]
    merged: list[str] = Field(description="Files with changes of the agent's, into which others' were merged.")
    kept: list[KeptView]


class WorkspaceRefreshView(RefreshedView):
    workspace: WorkspaceView


class SharedFolderView(BaseModel):
    path: str = Field(description="A read-only folder that follows the head, on `machine`.")
    seq: int = Field(description="The snapshot it shows now.")
    epoch: UUID = Field(description="The epoch of `seq`.")
    machine: str


class WorkspaceDiffView(ComparedView):
    """How a file in the folder differs from what the agent was given, or committed last."""


class WorkspaceDiffPage(BaseModel):
    files: list[WorkspaceDiffView]
    next_after: str | None = Field(description="Pass as `after` for the next page; null on the last.")


class WorkspaceChangeView(ChangeView):
    path: str = Field(description="In the folder.")
    change: FolderChangeKind
    renamed_from: str | None
    kept_at: str | None = Field(description="Where in the folder the version is that was refused.")


class WorkspaceCommitView(BaseModel):
    workspace: WorkspaceView
    seq: int | None = Field(
        description="Of the last commit that was made; null: there was none, nothing was to be done or all was refused."
    )
    changes: list[WorkspaceChangeView]
    reported: list[ReportedView]
    ignored: list[IgnoredView]
    notes: list[str] = Field(description="Sentences, such as that an ignore file is too large.")
    refreshed: RefreshedView | None = Field(description="If it was asked for, and could be done.")


class WorkspaceCompleteView(WorkspaceCommitView):
    removed: bool = Field(description="False: the folder is there still, and `kept_because` says why.")
    kept_because: list[str]
