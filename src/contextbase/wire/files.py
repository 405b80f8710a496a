"""Bodies of the file service: the same for projects and workspaces."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from contextbase.vocabulary import FileAction, Kind, SliceEncoding

__all__ = [
    "FileDetailsView",
    "FileEntryView",
    "FileHistoryView",
    "FileLinkView",
    "FileListView",
    "FileOperationView",
    "FileOperatorName",
    "FileReferenceView",
    "FileSliceView",
    "FileSyncView",
    "FileWriteView",
    "FolderCreate",
    "FolderTreeView",
    "ImagePartView",
    "MessagePartsView",
    "PlaceInfoView",
    "PlaceUsageView",
    "RenameRequest",
    "TextPartView",
]

FileOperatorName = Literal["web_ui", "agent", "external_agent", "saas_adapter", "api", "system", "external"]
_BY_NAME = ConfigDict(populate_by_name=True)


class FileEntryView(BaseModel):
    path: str
    name: str
    kind: Kind
    size: int
    modified_at: datetime | None = Field(description="Null: nobody noted it.")
    mime: str = Field(description="From name and content; empty for folders and links.")


class FileListView(BaseModel):
    entries: list[FileEntryView] = Field(description="By name.")
    next_after: str | None = Field(description="Pass as `after` for the next page.")


class FileDetailsView(FileEntryView):
    hash: str | None = Field(description="The sha256 of the content, which is also its ETag. Null: a folder.")
    executable: bool
    seq: int | None = Field(description="The commit that made this version. Null: it is in a workspace.")
    version: int | None


class FileSliceView(BaseModel):
    """`start`, `total` and `readLength` count characters of text, and bytes of anything else."""

    model_config = _BY_NAME

    content: str
    encoding: SliceEncoding
    charset: str | None = Field(description="Such as utf-8 or gb18030. Null: it is not text.")
    start: int
    total: int
    read_length: int = Field(alias="readLength")
    path: str
    mime: str
    hash: str | None


class FolderTreeView(BaseModel):
    name: str = Field(description="Empty: the top.")
    path: str
    folders: "list[FolderTreeView]"


class PlaceInfoView(BaseModel):
    model_config = _BY_NAME

    files: int
    folders: int
    disk_usage: int = Field(alias="diskUsage", description="Bytes of all files.")
    last_modified: datetime | None = Field(alias="lastModified")
    last_sync: datetime | None = Field(alias="lastSync", description="Null: never.")


class PlaceUsageView(BaseModel):
    model_config = _BY_NAME

    disk_usage: int = Field(alias="diskUsage", description="Bytes of all files.")
    uncommitted_bytes: int
    uncommitted_files: int
    most_bytes: int | None = Field(description="That a workspace may bring. Null: a project has no limit.")
    most_files: int | None


class FileOperationView(BaseModel):
    at: datetime
    action: FileAction
    path: str | None = Field(description="Null: a sync, of the whole place.")
    previous_path: str | None = Field(description="Of a rename.")
    kind: Kind = Field(description="What stands at the path since.")
    old_hash: str | None
    new_hash: str | None
    size: int
    operator_type: FileOperatorName = Field(description="The way in; `external`: a program in the workspace's folder.")
    principal: str
    message_id: str | None
    origin: str = Field(description="The address it came from; empty without 'admin'.")
    seq: int | None = Field(description="The commit, in a project.")


class FileHistoryView(BaseModel):
    operations: list[FileOperationView] = Field(description="The newest first.")
    next_before: str | None = Field(description="Pass as `before` for the next page.")


class FileWriteView(BaseModel):
    """What became of an operation."""

    model_config = _BY_NAME

    file_ref: str = Field(alias="fileRef", description="Such as workspace:upload/data.csv.")
    action: FileAction
    path: str
    status: Literal["written", "unchanged", "merged", "superseded", "in_review"]
    previous_path: str | None
    old_hash: str | None
    new_hash: str | None = Field(description="The new ETag.")
    size: int
    mime: str
    seq: int | None = Field(description="The commit. Null: it is uncommitted, in a workspace.")
    review_id: UUID | None


class FileSyncView(BaseModel):
    at: datetime | None
    registered: int
    operations: list[FileWriteView] = Field(description="The first 1,000 of them.")


class FileLinkView(BaseModel):
    """Whoever has the URL can read the file until it expires."""

    path: str
    url: str
    expires_at: datetime
    size: int
    mime: str
    hash: str | None


class TextPartView(BaseModel):
    type: Literal["text"] = "text"
    text: str


class ImagePartView(BaseModel):
    model_config = _BY_NAME

    type: Literal["image"] = "image"
    media_type: str = Field(alias="mediaType")
    data: str = Field(description="In base64.")


class FileReferenceView(BaseModel):
    """For what is too large for a message, or neither text nor an image."""

    model_config = _BY_NAME

    type: Literal["file"] = "file"
    file_ref: str = Field(alias="fileRef")
    media_type: str = Field(alias="mediaType", description="Empty: a folder or a link.")
    size: int
    hash: str | None
    reason: Literal["too_large", "binary", "folder", "link"]


class MessagePartsView(BaseModel):
    """A file as a message to a model can have it."""

    path: str
    parts: list[Annotated[TextPartView | ImagePartView | FileReferenceView, Field(discriminator="type")]]


class RenameRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str = Field(max_length=2048)
    target: str = Field(max_length=2048)


class FolderCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str = Field(max_length=2048)
