"""The agent programs that sessions can use."""

from fastapi import APIRouter

from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.wire.agent import AgentList, AgentView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/agents", tags=["sessions"])


@router.get("")
async def list_agents(caller: AuthenticatedCaller, services: AuthenticatedServices) -> AgentList:
    """The agents that a session can have, and whether this server has their programs."""
    caller.require(Action.READ, caller.grant.project_id)
    catalog = services.sessions.agents
    agents = [AgentView.model_validate(agent) for agent in await catalog.agents()]
    return AgentList(agents=agents, default=await catalog.default())
