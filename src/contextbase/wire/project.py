"""Bodies about projects."""

from datetime import datetime
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool

__all__ = ["NAME_OR_ID", "ProjectChange", "ProjectCreate", "ProjectDetail", "ProjectPage", "ProjectView"]

NAME_OR_ID: Final = "^[a-zA-Z0-9][a-zA-Z0-9._-]*$"


class ProjectCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        description="1 to 100 of a-z, 0-9 and ._- , starting with a letter or digit.",
        json_schema_extra={"pattern": "^[a-z0-9][a-z0-9._-]{0,99}$"},  # said here, checked where projects are made
    )
    description: str = Field("", max_length=4096)


class ProjectChange(BaseModel):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid")

    reads_gitignore: StrictBool | None = None
    allowed_secrets: list[str] | None = Field(
        default=None,
        max_length=1000,
        description="Replaces the list. `*` matches within a folder, `**` across folders: keys/*.pem, tests/**.",
    )


class ProjectView(BaseModel):
    id: UUID
    name: str
    description: str
    head: int = Field(description="Sequence number of the last commit; 0 when there is none.")
    epoch: UUID = Field(description="Renewed by a restore; cursors from another epoch are refused.")
    created_at: datetime
    reads_gitignore: bool = Field(description="Whether workspaces leave out new files that .gitignore files name.")
    allowed_secrets: list[str] = Field(
        description="Patterns of files that workspaces commit though they look like credentials."
    )


class ProjectDetail(ProjectView):
    """With its size; null for who may not see everything in it."""

    files: int | None = None
    bytes: int | None = Field(default=None, description="Of the files at the head.")
    versions: int | None = None
    stored_bytes: int | None = Field(default=None, description="Of all versions, equal contents counted once.")


class ProjectPage(BaseModel):
    projects: list[ProjectView]
    next_after: str | None = Field(description="Pass as `after` for the next page; null on the last.")
