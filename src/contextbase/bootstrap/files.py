"""The file service over both kinds of place."""

from datetime import timedelta

from contextbase.bootstrap.blobs import bucket_store
from contextbase.bootstrap.core import CoreServices
from contextbase.bootstrap.foundation import Foundation
from contextbase.files.links import DownloadLinks
from contextbase.files.operation_log import OperationLog
from contextbase.files.project_place import ProjectFiles
from contextbase.files.service import FileService
from contextbase.files.tree_index import TreeIndex
from contextbase.files.workspace_visit import WorkspaceFiles
from contextbase.streams.repository import StreamRepository
from contextbase.workspaces.model import Quota
from contextbase.workspaces.service import WorkspaceService

__all__ = ["file_service"]


def file_service(
    foundation: Foundation, core: CoreServices, workspaces: WorkspaceService, *, quota: Quota
) -> FileService:
    database = foundation.database
    index = TreeIndex(database)
    log = OperationLog(
        database=database,
        streams=StreamRepository(),
        audit=foundation.audit,
        clock=foundation.clock,
        hint=foundation.notifier.hint,
    )
    settings = foundation.settings
    seconds = settings.s3.link_seconds
    has_links = seconds > 0 and settings.storage.blob_location.bucket is not None
    return FileService(
        links=DownloadLinks(
            store=bucket_store(settings, foundation.spool) if has_links else None,
            lifetime=timedelta(seconds=seconds),
            clock=foundation.clock,
        ),
        projects=ProjectFiles(database=database, gate=core.gate, reads=core.reads, archives=core.archives, index=index),
        workspaces=WorkspaceFiles(
            database=database,
            workspaces=workspaces,
            index=index,
            log=log,
            quota=quota,
            largest_file=settings.server.max_upload_bytes,
        ),
    )
