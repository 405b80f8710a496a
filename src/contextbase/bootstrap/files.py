"""The file service over both kinds of place."""

from contextbase.bootstrap.core import CoreServices
from contextbase.bootstrap.foundation import Foundation
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
    return FileService(
        projects=ProjectFiles(database=database, gate=core.gate, reads=core.reads, archives=core.archives, index=index),
        workspaces=WorkspaceFiles(
            database=database,
            workspaces=workspaces,
            index=index,
            log=log,
            quota=quota,
            largest_file=foundation.settings.server.max_upload_bytes,
        ),
    )
