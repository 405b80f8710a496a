"""The chat by the paths of the product's first documents. Each answers like the route it stands for."""

from typing import Annotated, Final

from fastapi import APIRouter, Query

from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.chat_problems import ChatRoute
from contextbase.interfaces.api.routes import chat
from contextbase.interfaces.api.session_views import session_view
from contextbase.wire.chat import ChatCreate, ChatMessagePage
from contextbase.wire.session import SessionView

__all__ = ["router"]

_CHAT: Final = "/api/chat-opencode"
_HISTORY: Final = "/api/chat-opencode-history"

router = APIRouter(route_class=ChatRoute)
router.add_api_route(_CHAT, chat.chat, methods=["POST"])
router.add_api_route(f"{_CHAT}/{{session}}/stream", chat.resume_chat, methods=["GET"])
router.add_api_route(f"{_CHAT}/{{session}}/stop", chat.stop_chat, methods=["POST"])
router.add_api_route(_HISTORY, chat.list_chats, methods=["GET"])


@router.post(_HISTORY, status_code=201)
async def start_chat(
    caller: AuthenticatedCaller, services: AuthenticatedServices, body: ChatCreate | None = None
) -> SessionView:
    """A chat without a message yet."""
    start = body or ChatCreate()
    made = await services.sessions.chats.found_or_made(
        caller, start.id, lambda: chat.session_request(start, caller, services)
    )
    return session_view(made)


@router.get(f"{_HISTORY}/{{session}}")
async def show_chat(
    *,
    named: chat.NamedChat,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> ChatMessagePage:
    return await chat.list_chat_messages(chat=named, caller=caller, services=services, before=before, limit=limit)
