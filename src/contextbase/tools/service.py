"""All tools, and how one is called: the same for every way in."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from contextbase.errors import NotFound
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId
from contextbase.tools.arguments import checked
from contextbase.tools.model import Tool, ToolCall, ToolPlace, ToolRequest, ToolResult
from contextbase.tools.places import ToolPlaces
from contextbase.workspaces.place_paths import PlacePaths

__all__ = ["INSTRUCTIONS", "ToolService"]

INSTRUCTIONS: Final = (
    "contextbase holds a project's files, shared with other agents and people, with all their versions. Paths are "
    "relative to the project, as docs/plan.md. You see and change what your token allows; get_workspace_info says "
    "where you work. In a workspace nobody sees your changes until you call commit, which merges them with what "
    "others did; without one each change is a commit. Long answers say how to get the rest."
)


class ToolService:
    def __init__(self, *, places: ToolPlaces, tools: Iterable[Tool]) -> None:
        self._places = places
        self._tools = {tool.name: tool for tool in tools}

    @property
    def all(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def offered(self, caller: Caller) -> tuple[Tool, ...]:
        """Those that the caller's grant allows. All tell what is there, so without 'read' there are none."""
        allowed = caller.grant.actions if caller.may_read else frozenset()
        return tuple(tool for tool in self._tools.values() if tool.needs in allowed)

    async def place(self, request: ToolRequest) -> ToolPlace:
        """Where the caller works; see `ToolPlaces.find`."""
        return await self._places.find(request)

    async def project(self, request: ToolRequest) -> tuple[ProjectId, str]:
        """Where the caller works: the project's id and name."""
        return await self._places.project(request)

    async def paths(self, request: ToolRequest) -> PlacePaths:
        """How the caller's workspace names the project's paths."""
        return await self._places.paths(request)

    async def call(self, name: str, arguments: Mapping[str, Any], request: ToolRequest) -> ToolResult:
        """Raises the error that a service raised; `NotFound` for a tool that there is not."""
        tool = self._tools.get(name)
        if tool is None:
            near = get_close_matches(name, self._tools, n=1)
            meant = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(self._tools)}."
            raise NotFound(f"There is no tool {name[:60]!r}.{meant}")
        given = checked(name, tool.parameters, arguments)
        for action in (Action.READ, tool.needs):
            request.caller.require(action, request.caller.grant.project_id)
        return await tool.run(ToolCall(place=await self.place(request), arguments=given, message_id=request.message_id))
