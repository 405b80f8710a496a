"""Bodies about apps: the registry, the store, knowledge bases, secrets, manifests."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from contextbase.vocabulary import ChangeStatus, Kind
from contextbase.wire.agent_config import ConfigLayer, Name

__all__ = [
    "AppChangeBody",
    "AppCreate",
    "AppFileChanged",
    "AppFileList",
    "AppFileView",
    "AppProjectView",
    "AppProjects",
    "AppView",
    "KnowledgeBaseList",
    "KnowledgeBasePut",
    "KnowledgeBaseView",
    "ManifestComparison",
    "ManifestFieldDifference",
    "ManifestList",
    "ManifestView",
    "RestorePlanView",
    "SealedSecretList",
    "SealedSecretPut",
    "SealedSecretView",
    "StoreEntryView",
    "StoreView",
    "VisibilityBody",
    "VisibilityKind",
]

APP_NAME = r"^[a-z0-9][a-z0-9._-]{0,49}$"
Principal = Annotated[str, Field(min_length=1, max_length=120)]
Subject = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class VisibilityKind(StrEnum):
    DEPARTMENT = "department"
    ROLE = "role"


class AppCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="1 to 50 of a-z, 0-9 and ._- ; it never changes.", pattern=APP_NAME)
    title: str = Field("", description="Empty: the name.", max_length=200)
    description: str = Field("", max_length=4096)
    icon: str = Field("", description="An emoji, or data:image/png;base64,…", max_length=65_536)


class AppChangeBody(BaseModel):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    description: Annotated[str, Field(max_length=4096)] | None = None
    icon: Annotated[str, Field(max_length=65_536)] | None = None
    enabled: StrictBool | None = None
    owner: Principal | None = None


class VisibilityBody(BaseModel):
    """To whom an app is shown: any of the three is enough. Without any it is shown to administrators alone."""

    model_config = ConfigDict(extra="forbid")

    departments: list[Subject] = Field(default=[], max_length=1000)
    roles: list[Subject] = Field(default=[], max_length=100)
    members: list[Principal] = Field(default=[], description="Such as user:ann.", max_length=10_000)


class AppView(BaseModel):
    id: UUID
    name: str
    title: str
    description: str
    icon: str
    enabled: bool
    owner: str
    project_id: UUID = Field(description="Of its own tree.")
    created_at: datetime
    updated_at: datetime
    visibility: VisibilityBody | None = Field(None, description="For those who may change it; else null.")


class StoreEntryView(BaseModel):
    name: str
    title: str
    description: str
    icon: str
    can_view: bool = Field(description="True: what you may not see is not listed.")
    can_use: bool
    view_reason: str
    use_reason: str


class StoreView(BaseModel):
    apps: list[StoreEntryView] = Field(description="By name.")


class AppProjectView(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = Field("", max_length=4096)


class AppProjects(BaseModel):
    projects: list[AppProjectView] = Field(description="Beside `default`, which every app has.")


class ManifestView(BaseModel):
    app: str
    runtime_version: str
    number: int = Field(description="The highest is the latest.")
    tree_seq: int = Field(description="The snapshot of the app's tree that its template and seeds are of.")
    manifest: dict[str, Any] = Field(description="In the spelling that was asked for.")
    created_by: str
    created_at: datetime


class ManifestList(BaseModel):
    manifests: list[ManifestView] = Field(description="The latest first.")


class ManifestFieldDifference(BaseModel):
    field: str
    old: Any
    new: Any


class ManifestComparison(BaseModel):
    old: str
    new: str
    differences: list[ManifestFieldDifference]


class RestorePlanView(BaseModel):
    plan: dict[str, Any] = Field(description="As executors get it.")


class AppFileView(BaseModel):
    path: str = Field(description="In the app's tree.")
    kind: Kind
    size: int
    hash: str | None = Field(description="The ETag; null for a folder.")


class AppFileList(BaseModel):
    files: list[AppFileView] = Field(description="By path.")
    next_after: str | None = Field(description="Pass as `after` for the next page; null on the last.")


class AppFileChanged(BaseModel):
    path: str
    status: ChangeStatus
    seq: int | None = Field(description="The snapshot that has it.")
    hash: str | None = Field(description="The ETag of what was sent; null: nothing stands there.")


class SealedSecretPut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: str = Field(
        description="Stored sealed, and never shown again.", min_length=1, max_length=65_536, pattern=r"^[^\x00]+$"
    )


class SealedSecretView(BaseModel):
    name: str
    key: str = Field(description="The key it stands for, such as app/x/project/default/ann/auth/token.")
    changed_at: datetime


class SealedSecretList(BaseModel):
    secrets: list[SealedSecretView]


class KnowledgeBasePut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str = Field("", max_length=4096)
    tags: list[Name] = Field([], max_length=50)


class KnowledgeBaseView(BaseModel):
    layer: ConfigLayer
    app_project: str | None
    name: str
    description: str
    tags: list[str]
    prefix: str = Field(description="Where its files are, such as app/x/kb/handbook/.")


class KnowledgeBaseList(BaseModel):
    knowledge_bases: list[KnowledgeBaseView] = Field(description="The union of the app's, the project's and yours.")
