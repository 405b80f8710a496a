"""Chats: sessions for chat clients that speak the AI SDK's UI message stream, such as useChat."""

import hashlib
import re
from base64 import b64decode
from dataclasses import replace
from mimetypes import guess_extension
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response

from contextbase.bootstrap import CoreServices
from contextbase.errors import InvalidInput, NotFound
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.chat_problems import ChatRoute
from contextbase.interfaces.api.chat_stream import chat_stream
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.event_stream import STREAMED_EVENTS
from contextbase.interfaces.api.project_parameter import ProjectFilter
from contextbase.interfaces.api.routes.sessions import list_sessions
from contextbase.interfaces.api.session_views import run_details_view
from contextbase.sessions.attachments import AttachedFile
from contextbase.sessions.model import AgentSession, RunWishes, SessionRequest, checked_prompt
from contextbase.wire.chat import ChatCreate, ChatId, ChatMessage, ChatMessagePage, ChatPage, ChatStart, ChatStopView

__all__ = ["router"]

_DATA_URL: Final = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)

router = APIRouter(
    prefix="/api/v1/chat", tags=["chat"], responses=problem_answers(404, 409, 429), route_class=ChatRoute
)

_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": STREAMED_EVENTS, "description": "The UI message stream."}
}

NamedChat = Annotated[
    ChatId, Path(alias="session", description="The session's id, or the client's own name of the chat.")
]


@router.post("", response_class=Response, responses=_STREAMED)
async def chat(
    body: ChatCreate, request: Request, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> Response:
    """Send the agent a message, and read what it does: a UI message stream of the AI SDK, version 1, to the end of the
    run. Whoever hangs up stops nothing.

    The same message id again gives the same run. The headers `x-session-id` and `x-run-id` name what was made."""
    message = _newest(body)
    text, files = _text(message), _files(message)
    chats, sessions = services.sessions.chats, services.sessions.service

    async def request_of_new() -> SessionRequest:
        request = await session_request(body, caller, services)
        checked_prompt(text)  # or an empty chat would stay
        return request

    session = await chats.found_or_made(caller, body.id, request_of_new)
    stored = await services.sessions.attachments.stored(files)
    wishes = replace(_wishes(body, session, services), attachments=stored)
    run = await sessions.send(caller, session.id, text, wishes=wishes, idempotency_key=_key(body, message))
    return await chat_stream(request, services, caller, run)


@router.get("")
async def list_chats(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    project_id: ProjectFilter,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> ChatPage:
    """Your own, newest first."""
    page = await list_sessions(caller=caller, services=services, project_id=project_id, before=before, limit=limit)
    return ChatPage(chats=page.sessions, next_before=page.next_before)


@router.get(
    "/{session}/stream", response_class=Response, responses={**_STREAMED, 204: {"description": "Nothing works."}}
)
async def resume_chat(
    chat: NamedChat, request: Request, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> Response:
    """The message that the agent is working on, from its beginning: what is finished whole, then what comes. 204 when
    no run works, and for a chat that you do not have."""
    try:
        session = await services.sessions.chats.find(caller, chat)
        run = await services.sessions.chats.at_work(caller, session.id)
    except NotFound:
        run = None
    if run is None:
        return Response(status_code=204)
    return await chat_stream(request, services, caller, run)


@router.post("/{session}/stop")
async def stop_chat(chat: NamedChat, caller: AuthenticatedCaller, services: AuthenticatedServices) -> ChatStopView:
    """End the run that works. What it did so far stays in the session's folder; messages that wait come next."""
    session = await services.sessions.chats.find(caller, chat, is_to_change=True)
    run = await services.sessions.chats.at_work(caller, session.id)
    if run is None:
        return ChatStopView(run=None)
    await services.sessions.service.cancel(caller, run.id)
    return ChatStopView(run=run_details_view(await services.sessions.service.run(caller, run.id)))


@router.get("/{session}/messages")
async def list_chat_messages(
    *,
    chat: NamedChat,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: Annotated[int | None, Query(description="As `next_before` gave it.", ge=1, lt=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> ChatMessagePage:
    """The newest messages as UIMessages, in order; `before` gives those before them. The last may still grow."""
    session = await services.sessions.chats.find(caller, chat)
    page = await services.sessions.chats.messages(caller, session.id, before=before, limit=limit)
    return ChatMessagePage(id=session.id, messages=[dict(one) for one in page.messages], next_before=page.next_before)


async def session_request(start: ChatStart, caller: Caller, services: CoreServices) -> SessionRequest:
    return SessionRequest(
        project_id=await _project_id(start.project, caller, services),
        provider=await services.sessions.agents.provider(start.provider),
        model=start.model,
    )


def _wishes(body: ChatCreate, session: AgentSession, services: CoreServices) -> RunWishes:
    wishes = RunWishes(
        provider=body.provider,
        model=body.model,
        profile=body.execution_profile or body.agent,
        options=body.provider_options,
        mode=body.mode,
    )
    return services.sessions.agents.wished(session.provider, wishes)


async def _project_id(name: str | None, caller: Caller, services: CoreServices) -> ProjectId:
    if name is not None:
        return await services.projects.id_of(caller, name)
    if caller.grant.project_id is not None:
        return caller.grant.project_id
    projects = await services.projects.list(caller, limit=2)
    if len(projects) != 1:
        raise InvalidInput("Name the project that the agent works in, as 'project': this chat is new.")
    return projects[0].id


def _newest(body: ChatCreate) -> ChatMessage:
    """The client's history is not trusted: the server has its own."""
    if isinstance(body.message, str):
        return ChatMessage(content=body.message)
    given = [body.message] if body.message is not None else body.messages or []
    said = [message for message in given if message.role == "user"]
    if not said:
        raise InvalidInput("There is no message of the user in 'messages'; say what the agent should do.")
    return said[-1]


def _text(message: ChatMessage) -> str:
    texts = [str(part.get("text", "")) for part in message.parts or [] if part.get("type") == "text"]
    return "\n\n".join(texts) if texts else message.content or ""


def _files(message: ChatMessage) -> list[AttachedFile]:
    """Of its parts that are files, as `useChat` sends them: the content is in the address."""
    files = []
    for number, part in enumerate([part for part in message.parts or [] if part.get("type") == "file"], 1):
        found = _DATA_URL.fullmatch(str(part.get("url", "")))
        try:
            content = b64decode(found.group(2), validate=True) if found is not None else None
        except ValueError:
            content = None
        if found is None or content is None:
            raise InvalidInput("The file of a message has its content in its `url`: data:MEDIA-TYPE;base64,CONTENT.")
        named = str(part.get("filename") or "").rpartition("/")[2].lstrip(".")
        name = named or f"file-{number}{guess_extension(found.group(1)) or ''}"
        files.append(AttachedFile(name=name, media_type=found.group(1), content=content))
    return files


def _key(body: ChatCreate, message: ChatMessage) -> str | None:
    """A client that asks again with the same message means the same run, unless it says otherwise."""
    if message.id is None or body.trigger != "submit-message":
        return None
    return "chat-" + hashlib.sha256(message.id.encode(errors="surrogatepass")).hexdigest()
