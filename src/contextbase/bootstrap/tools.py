"""The agent tools over the services."""

from contextbase.bootstrap.core import CoreServices
from contextbase.files.service import FileService
from contextbase.tools.change_tools import ChangeTools
from contextbase.tools.file_tools import FileTools
from contextbase.tools.lease_tools import LeaseTools
from contextbase.tools.places import ToolPlaces
from contextbase.tools.search_tools import SearchTools
from contextbase.tools.service import ToolService
from contextbase.tools.version_tools import VersionTools
from contextbase.workspaces.service import WorkspaceService
from contextbase.workspaces.workspace_search import WorkspaceSearch

__all__ = ["tool_service"]


def tool_service(
    core: CoreServices, workspaces: WorkspaceService, files: FileService, search: WorkspaceSearch
) -> ToolService:
    return ToolService(
        places=ToolPlaces(projects=core.projects, workspaces=workspaces),
        tools=(
            *FileTools(files=files, streams=core.streams).tools,
            *SearchTools(projects=core.search, workspaces=search).tools,
            *VersionTools(workspaces=workspaces, log=core.history, diffs=core.diffs).tools,
            *LeaseTools(leases=core.leases).tools,
            *ChangeTools(database=core.database, gate=core.gate, feed=core.feed).tools,
        ),
    )
