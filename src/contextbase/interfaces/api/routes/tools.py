"""The agent tools over HTTP: the same as over MCP."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.json_body import JsonBodyRoute
from contextbase.tools.model import ToolRequest
from contextbase.tools.service import INSTRUCTIONS
from contextbase.wire.commit import ProjectName
from contextbase.wire.tool import ToolAnswer, ToolInvocation, ToolList, ToolView
from contextbase.wire.workspace import AgentName

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/tools", tags=["tools"], route_class=JsonBodyRoute)

Project = Annotated[ProjectName | None, Query(description="Needed only with a token for several projects.")]
Agent = Annotated[AgentName | None, Query(description="Act for this agent; needs 'admin'. Left out: yourself.")]


@router.get("")
async def list_tools(caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> ToolList:
    """What your token allows."""
    return ToolList(
        instructions=INSTRUCTIONS,
        tools=[
            ToolView(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                read_only=tool.is_read_only,
                destructive=tool.is_destructive,
            )
            for tool in agents.tools.offered(caller)
        ],
    )


@router.post("/{name}", responses=problem_answers(404, 409, 421, 429))
async def call_tool(
    *,
    name: Annotated[str, Path(max_length=100)],
    body: ToolInvocation,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    project: Project = None,
    agent: Agent = None,
) -> ToolAnswer:
    """Call a tool where you work: in your open workspace, or in the project itself if you have none."""
    request = ToolRequest(caller=caller, project=project, agent=agent, message_id=body.message_id)
    result = await agents.tools.call(name, body.arguments, request)
    return ToolAnswer(text=result.text, note=result.note, data=dict(result.data))
