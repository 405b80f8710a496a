"""Answers of the file service as bodies."""

from typing import cast

from contextbase.files.content_parts import ImagePart, MessagePart, TextPart
from contextbase.files.file_tree import FolderNode
from contextbase.files.links import DownloadLink
from contextbase.files.model import FileDetails, FileEntry, FileOperation, OperationResult, PlaceInfo, PlaceUsage
from contextbase.ids import ContentHash
from contextbase.wire.files import (
    FileDetailsView,
    FileEntryView,
    FileLinkView,
    FileOperationView,
    FileOperatorName,
    FileReferenceView,
    FileWriteView,
    FolderTreeView,
    ImagePartView,
    MessagePartsView,
    PlaceInfoView,
    PlaceUsageView,
    TextPartView,
)

__all__ = [
    "details_view",
    "entry_view",
    "info_view",
    "link_view",
    "operation_view",
    "parts_view",
    "result_view",
    "tree_view",
    "usage_view",
]


def entry_view(entry: FileEntry) -> FileEntryView:
    return FileEntryView(
        path=entry.path,
        name=entry.path.name,
        kind=entry.kind,
        size=entry.size,
        modified_at=entry.modified_at,
        mime=entry.mime,
    )


def details_view(details: FileDetails) -> FileDetailsView:
    return FileDetailsView(
        **dict(entry_view(details.entry)),
        hash=_hash(details.hash),
        executable=details.executable,
        seq=details.seq,
        version=details.version,
    )


def tree_view(name: str, path: str, node: FolderNode) -> FolderTreeView:
    return FolderTreeView.model_construct(
        name=name,
        path=path,
        folders=[
            tree_view(below, f"{path}/{below}" if path else below, node.folders[below])
            for below in sorted(node.folders)
        ],
    )


def operation_view(operation: FileOperation) -> FileOperationView:
    return FileOperationView(
        at=operation.at,
        action=operation.action,
        path=operation.path,
        previous_path=operation.previous_path,
        kind=operation.kind,
        old_hash=_hash(operation.old_hash),
        new_hash=_hash(operation.new_hash),
        size=operation.size,
        operator_type=cast("FileOperatorName", operation.operator_type),
        principal=operation.principal,
        message_id=operation.message_id,
        origin=operation.origin,
        seq=operation.seq,
    )


def result_view(reference: str, result: OperationResult) -> FileWriteView:
    return FileWriteView(
        fileRef=f"{reference}:{result.path}",
        action=result.action,
        path=result.path,
        status=result.status.value,
        previous_path=result.previous_path,
        old_hash=_hash(result.old_hash),
        new_hash=_hash(result.new_hash),
        size=result.size,
        mime=result.mime,
        seq=result.seq,
        review_id=result.review_id,
    )


def link_view(details: FileDetails, link: DownloadLink) -> FileLinkView:
    entry = details.entry
    return FileLinkView(
        path=entry.path,
        url=link.url,
        expires_at=link.expires_at,
        size=entry.size,
        mime=entry.mime,
        hash=_hash(details.hash),
    )


def parts_view(reference: str, details: FileDetails, part: MessagePart) -> MessagePartsView:
    return MessagePartsView(path=details.entry.path, parts=[_part_view(reference, details, part)])


def _part_view(
    reference: str, details: FileDetails, part: MessagePart
) -> TextPartView | ImagePartView | FileReferenceView:
    if isinstance(part, TextPart):
        return TextPartView(text=part.text)
    if isinstance(part, ImagePart):
        return ImagePartView(mediaType=part.media_type, data=part.data)
    return FileReferenceView.model_validate(
        {
            "fileRef": f"{reference}:{details.entry.path}",
            "mediaType": details.entry.mime,
            "size": details.entry.size,
            "hash": _hash(details.hash),
            "reason": part.reason.value,
        }
    )


def info_view(found: PlaceInfo) -> PlaceInfoView:
    return PlaceInfoView(
        files=found.files,
        folders=found.folders,
        diskUsage=found.disk_usage,
        lastModified=found.last_modified,
        lastSync=found.last_sync,
    )


def usage_view(found: PlaceUsage) -> PlaceUsageView:
    return PlaceUsageView(
        diskUsage=found.disk_usage,
        uncommitted_bytes=found.uncommitted_bytes,
        uncommitted_files=found.uncommitted_files,
        most_bytes=found.most_bytes,
        most_files=found.most_files,
    )


def _hash(value: ContentHash | None) -> str | None:
    return None if value is None else str(value)
