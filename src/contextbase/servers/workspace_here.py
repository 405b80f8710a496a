"""The workspace that the current folder is in. Which server to ask comes from the account's own files, and whose the
folder is from that server: nothing in the folder is read."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from contextbase.servers.choice import FoundServer, workspace_folder
from contextbase.servers.request import get

__all__ = ["WorkspaceHere", "workspace_here"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceHere:
    project_id: str
    agent: str  # such as agent:indexer


def workspace_here(server: FoundServer) -> WorkspaceHere | None:
    """None when we are in no open workspace of this server, or in one the token may not see."""
    folder = None if server.data is None else workspace_folder(server.data)
    if folder is None:
        return None
    try:
        following = UUID(int=UUID(folder.name).int + 1)
    except ValueError:  # not a folder the server made
        return None
    # Pages go from newer ids to older ones, so the workspace itself is the first on this page.
    page = get(server.url, server.token, "/api/v1/workspaces", state="open", before=str(following), limit="1")
    for found in page.get("workspaces", []):
        if Path(found["path"]).resolve() == folder:
            return WorkspaceHere(project_id=found["project_id"], agent=found["agent"])
    return None
