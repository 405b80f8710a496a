"""Sessions: conversations with an agent at work in a project. Each is its owner's own."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectFilter
from contextbase.interfaces.api.session_views import (
    landing_view,
    opened_session_view,
    rewound_view,
    run_view,
    session_view,
)
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.attachments import AttachedFile
from contextbase.sessions.model import RunWishes, SessionId, SessionRequest
from contextbase.sessions.rewind import SessionRewinds
from contextbase.sessions.waiting_work import WaitingWork
from contextbase.wire.agent_config import AgentConfig
from contextbase.wire.session import (
    IDEMPOTENCY_KEY,
    LandingView,
    MessagePage,
    MessageView,
    OpenedSessionView,
    RunCreate,
    RunPage,
    RuntimeVersionPin,
    RunView,
    SessionCreate,
    SessionFork,
    SessionPage,
    SessionRewind,
    SessionRewoundView,
    SessionView,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sessions", tags=["sessions"], responses=problem_answers(404, 409))


async def _session_id(session: Annotated[UUID, Path(description="The session's id.")]) -> SessionId:
    return SessionId(session)


async def _waiting_work(request: Request) -> WaitingWork:
    work: WaitingWork = request.app.state.services.waiting_work
    return work


async def _rewinds(request: Request) -> SessionRewinds:
    rewinds: SessionRewinds = request.app.state.services.rewinds
    return rewinds


NamedSession = Annotated[SessionId, Depends(_session_id)]
Waiting = Annotated[WaitingWork, Depends(_waiting_work)]
Rewinds = Annotated[SessionRewinds, Depends(_rewinds)]


@router.post("", status_code=201)
async def create_session(
    body: SessionCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> SessionView:
    """A session of yours, in a project or composed by an app. Its agent may do what your token allows, and no more than
    you may."""
    if body.app is not None:
        asked = AppSessionRequest(
            app=body.app,
            project=body.app_project,
            runtime_version=body.runtime_version,
            title=body.title,
            overrides=body.overrides or AgentConfig.model_validate({}),
        )
        return session_view(await services.sessions.apps.create(caller, asked))
    provider = await services.sessions.agents.provider(body.provider)
    request = SessionRequest(
        project_id=await services.projects.id_of(caller, body.project or ""),
        folder=None if body.folder is None else TreePath.parse(body.folder),
        provider=provider,
        model=body.model,
        land=body.land,
        profile=body.profile,
        title=body.title,
        options=services.sessions.agents.options(provider, body.options),
    )
    return session_view(await services.sessions.service.create(caller, request))


@router.get("")
async def list_sessions(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    project_id: ProjectFilter,
    alerted: Annotated[bool, Query(description="Only those whose files cannot be stored: `worker.alert`.")] = False,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SessionPage:
    """Your own, newest first."""
    found = await services.sessions.service.list(
        caller,
        project_id=project_id,
        before=None if before is None else SessionId(before),
        limit=limit + 1,
        alerted=alerted,
    )
    return SessionPage(
        sessions=[session_view(session) for session in found[:limit]],
        next_before=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/{session}")
async def show_session(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> OpenedSessionView:
    """A session with its worker and the runs that have not ended. An administrator may look, and the audit trail says
    so."""
    return opened_session_view(await services.sessions.service.get(caller, session))


@router.delete("/{session}", status_code=204)
async def delete_session(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> Response:
    """Remove it with all that was said and done in it, and what is not committed. What its agent committed stays."""
    await services.sessions.service.delete(caller, session)
    return Response(status_code=204)


@router.put("/{session}/runtime-version")
async def set_runtime_version(
    session: NamedSession, body: RuntimeVersionPin, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> RuntimeVersionPin:
    """Compose a session of an app of this manifest from its next run on, or (null) of the latest."""
    await services.sessions.apps.pin(caller, session, body.runtime_version)
    return body


@router.post("/{session}/runs", status_code=202)
async def send_message(
    session: NamedSession,
    body: RunCreate,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Sent again with the same key, the same run is answered.",
            min_length=1,
            max_length=200,
            pattern=IDEMPOTENCY_KEY,
        ),
    ] = None,
) -> RunView:
    """Send the agent a message: a run, which begins when those before it have ended and a machine has room. With the
    mode `steer` the working run takes it in, and it ends with the reason `steered`."""
    wishes = RunWishes(
        model=body.model, profile=body.profile, provider=body.provider, options=body.options, mode=body.mode
    )
    if body.provider is not None or body.options:
        found = await services.sessions.service.get(caller, session)
        wishes = services.sessions.agents.wished(found.session.provider, wishes)
    if body.attachments:
        await services.sessions.service.get(caller, session)  # before anything is stored
        files = [AttachedFile(**dict(one)) for one in body.attachments]
        wishes = replace(wishes, attachments=await services.sessions.attachments.stored(files))
    run = await services.sessions.service.send(
        caller, session, body.message, wishes=wishes, idempotency_key=idempotency_key
    )
    return run_view(run)


@router.get("/{session}/runs")
async def list_runs(
    *,
    session: NamedSession,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: Annotated[int | None, Query(description="A run's number.", ge=1, lt=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> RunPage:
    """Newest first."""
    found = await services.sessions.service.runs_of(caller, session, before=before, limit=limit + 1)
    return RunPage(
        runs=[run_view(run) for run in found[:limit]],
        next_before=found[limit - 1].number if len(found) > limit else None,
    )


@router.get("/{session}/messages")
async def list_messages(
    *,
    session: NamedSession,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: Annotated[int | None, Query(description="A message's position.", ge=1, lt=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> MessagePage:
    """The newest messages, in the order they were said; `before` gives those before them."""
    found = await services.sessions.service.messages(caller, session, before=before, limit=limit + 1)
    shown = found[-limit:]
    return MessagePage(
        messages=[MessageView.model_validate(message) for message in shown],
        next_before=shown[0].position if len(found) > limit else None,
    )


@router.post("/{session}/stop")
async def stop_session(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> OpenedSessionView:
    """Cancel its runs, and stop its worker once its files are stored. The next message starts it again."""
    await services.sessions.service.stop(caller, session)
    return await show_session(session, caller, services)


@router.post("/{session}/close")
async def close_session(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> OpenedSessionView:
    """Stop it for good: it takes no more messages. What was said and done stays readable."""
    await services.sessions.service.close(caller, session)
    return await show_session(session, caller, services)


@router.post("/{session}/pin")
async def pin_session(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> OpenedSessionView:
    """Do not stop its worker for being idle."""
    await services.sessions.service.pin(caller, session, pinned=True)
    return await show_session(session, caller, services)


@router.post("/{session}/unpin")
async def unpin_session(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> OpenedSessionView:
    """Stop its worker for being idle, as others are."""
    await services.sessions.service.pin(caller, session, pinned=False)
    return await show_session(session, caller, services)


@router.post("/{session}/land", responses=problem_answers(421, 429))
async def land_work(session: NamedSession, caller: AuthenticatedCaller, work: Waiting) -> LandingView:
    """Commit what finished runs left in the session's folder, as its agent. 409 while a run has not ended."""
    return landing_view((await work.land(caller, session)).to_json())


@router.post("/{session}/discard", responses=problem_answers(421, 429))
async def discard_work(session: NamedSession, caller: AuthenticatedCaller, work: Waiting) -> LandingView:
    """Throw away what finished runs left uncommitted in the session's folder. The conversation stays. 409 while a run
    has not ended."""
    return landing_view((await work.discard(caller, session)).to_json())


@router.post("/{session}/rewind")
async def rewind_session(
    session: NamedSession, body: SessionRewind, caller: AuthenticatedCaller, rewinds: Rewinds
) -> SessionRewoundView:
    """Take the conversation back to a message: what came after it is hidden, and the agent forgets it. With `files`,
    the uncommitted work in the session's folder is what it was then. What has landed stays in the project. 409 while a
    run has not ended, and with `files` for a message in the middle of an answer."""
    return rewound_view(await rewinds.rewind(caller, session, body.message_id, with_files=body.files))


@router.post("/{session}/fork", status_code=201)
async def fork_session(
    session: NamedSession, body: SessionFork, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> SessionView:
    """A new session of yours that goes on from a message of this one, with what the agent knew there and the work that
    was not committed. This session stays as it is. 409 for a message of a run that has not ended."""
    return session_view(await services.sessions.forks.fork(caller, session, body.message_id))
