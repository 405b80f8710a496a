"""What a tool is, what a call of it brings, and what it answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from contextbase.files.content_parts import ImagePart
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, Seq
from contextbase.tools.arguments import Arguments, Parameter
from contextbase.workspaces.model import NamedWorkspace, WorkspaceId
from contextbase.workspaces.place_paths import PlacePaths

__all__ = ["LONGEST_ANSWER", "Tool", "ToolCall", "ToolPlace", "ToolRequest", "ToolResult"]

LONGEST_ANSWER: Final = 10_000
"""Characters. Agent programs cut what is longer, or put it into a file that the model has to open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """Who calls a tool, and what came beside the arguments: headers and MCP's `_meta`, never what a model wrote."""

    caller: Caller
    project: str | None = None  # chosen by the program that connects; None: the only one there can be
    agent: str | None = None  # for whom the caller acts; None: for itself
    message_id: str | None = None  # of the conversation's message that asked for it


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolPlace:
    """Where a call works: the open workspace of whoever acts, or else the project itself."""

    caller: Caller  # who asks
    acting: Caller  # the same, unless it acts for an agent
    agent: str | None  # that agent
    project_id: ProjectId
    project: str  # its name
    paths: PlacePaths  # how the workspace names the project's paths
    base: Seq | None  # the snapshot the workspace was made from; None: there is no workspace
    workspace_id: WorkspaceId | None = None

    @property
    def workspace(self) -> NamedWorkspace:
        return NamedWorkspace(self.project_id, self.agent)

    @property
    def is_workspace(self) -> bool:
        return self.base is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    place: ToolPlace
    arguments: Arguments
    message_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult:
    """`text` and `note` say it all to a model; `data` is the same for programs."""

    text: str
    note: str = ""  # a sentence beside what a file holds, such as how to read on
    data: Mapping[str, Any] = field(default_factory=dict)
    image: ImagePart | None = None  # for models that see


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    name: str
    description: str  # its first sentence is what clients search in
    parameters: tuple[Parameter, ...] = ()
    needs: Action = Action.READ
    is_destructive: bool = False  # whether it may remove or replace what is there
    is_idempotent: bool = False
    is_basic: bool = False  # one that every agent needs: clients that load tools on demand load it at once
    run: Callable[[ToolCall], Awaitable[ToolResult]]

    @property
    def is_read_only(self) -> bool:
        return self.needs is Action.READ

    @property
    def input_schema(self) -> dict[str, Any]:
        """No titles, no nulls, no defaults: what a model reads costs."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.parameters},
        }
        if required := [parameter.name for parameter in self.parameters if parameter.is_required]:
            schema["required"] = required
        return schema
