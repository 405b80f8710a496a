"""Puts routes, authentication, errors and middleware together."""

from functools import partial
from typing import Any

from fastapi import Depends, FastAPI, Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from contextbase import __version__
from contextbase.bootstrap import CoreServices, Services
from contextbase.errors import HeldElsewhere
from contextbase.interfaces.api.authentication import FORWARDED_CALLER, authenticate
from contextbase.interfaces.api.direct import DirectRoute, DirectRoutes
from contextbase.interfaces.api.document import DocumentedApp, problem_answers
from contextbase.interfaces.api.forwarding.received_body import BodyRecorder
from contextbase.interfaces.api.forwarding.sent_on import Forwarder
from contextbase.interfaces.api.forwarding.taken_over import ForwardedRequests
from contextbase.interfaces.api.login_codes import LoginCodes
from contextbase.interfaces.api.metrics import Metrics
from contextbase.interfaces.api.middleware import RequestMiddleware
from contextbase.interfaces.api.problems import error_response, install_problem_handlers
from contextbase.interfaces.api.query_names import known_query
from contextbase.interfaces.api.routes import (
    agents,
    aliases,
    app_files,
    app_settings,
    apps,
    archives,
    blame,
    chat,
    command_pipe,
    commands,
    commits,
    diffs,
    environments,
    events,
    feed,
    files,
    groups,
    health,
    history,
    human_loop,
    leases,
    machines,
    models,
    openid,
    pages,
    passwords,
    policies,
    projects,
    reverting,
    reviews,
    roles,
    runs,
    sandboxes,
    search,
    session_shares,
    session_snapshots,
    session_terminal,
    sessions,
    snapshots,
    system,
    tags,
    terminal,
    todos,
    tokens,
    tools,
    users,
    workbench,
    workspaces,
)
from contextbase.interfaces.mcp.endpoint import McpEndpoint
from contextbase.interfaces.workbench.build import WorkbenchBuild
from contextbase.wire.commit import CommitCreate
from contextbase.wire.tree import CheckoutRequest

__all__ = ["create_app"]

_WORK = (search, workspaces, tools, commands, sandboxes)
_CONVERSATIONS = (chat, sessions, session_shares, session_snapshots, runs, human_loop, todos, agents)
_ADMINISTRATION = (policies, groups, models, environments, projects, tokens, machines)
_PLATFORM = (apps, app_settings, app_files)
_PEOPLE = (users, passwords, roles)
_PAST = (archives, blame, diffs, reverting, reviews, tags)


def create_app(services: Services, forwarder: Forwarder | None = None) -> FastAPI:
    """The ASGI application over services that are open for as long as it runs. `forwarder`: sends on what another
    machine has to answer; None: there are no others."""
    app = DocumentedApp(
        title="contextbase",
        version=__version__,
        description="A shared, versioned context base for AI agents.",
        openapi_url=None,  # served by routes/pages.py, behind authentication like everything else
        docs_url=None,
        redoc_url=None,
        responses=problem_answers(413, 500),
        telemetry={"tracing": False, "metrics": False, "logs": False},  # we have our own; looking for it takes its time
    )
    app.state.services = services
    app.state.metrics = Metrics(services.core.metrics)
    app.state.forwarder = forwarder
    app.state.login_codes = LoginCodes()
    app.state.workbench = WorkbenchBuild()
    # Deny by default: what is not named below these needs a caller. What is asked for most is looked for first.
    routers = [
        module.router for module in (commits, snapshots, feed, events, *_WORK, *_CONVERSATIONS, leases, history, *_PAST)
    ]
    routers += [
        history.system_router,
        *(module.router for module in (*_ADMINISTRATION, *_PEOPLE, *_PLATFORM, system, aliases, pages)),
    ]
    routers += [files.workspace_router, files.project_router]
    for router in routers:
        app.include_router(
            router,
            dependencies=[Depends(authenticate), Depends(known_query)],
            responses=problem_answers(400, 401, 403, 422, 503),
        )
    # Web sockets authenticate by themselves: there is no answer to a refused one otherwise.
    for router in (terminal.router, session_terminal.router, command_pipe.router, health.router, pages.open_router):
        app.include_router(router, dependencies=[Depends(known_query)], responses=problem_answers(422))
    app.include_router(openid.open_router)  # the provider writes the query
    app.include_router(workbench.router)  # its queries are the page's own business
    # Looked for first: agents ask it all day long.
    mcp = McpEndpoint(services, forwarder)
    app.router.routes.insert(0, Route("/mcp", endpoint=mcp, methods=["POST"]))
    services.models.stream_apps.register("mcp", mcp)
    install_problem_handlers(app)
    if forwarder is not None:
        app.add_exception_handler(HeldElsewhere, partial(_send_on, forwarder))
        app.add_middleware(BodyRecorder, most=services.core.settings.server.max_request_bytes)
    app.add_middleware(DirectRoutes, routes=_asked_most(services.core))
    if services.machine is not None:
        app.add_middleware(ForwardedRequests, checker=services.machine.checker)
    app.add_middleware(
        RequestMiddleware,
        metrics=app.state.metrics,
        max_request_bytes=services.core.settings.server.max_request_bytes,
        larger=dict.fromkeys((commits.UPLOADS, files.STREAMED), services.core.settings.server.max_upload_bytes),
    )
    app.middleware_stack = _from_ours_on(app.build_middleware_stack())
    return app


def _from_ours_on(stack: Any) -> ASGIApp:
    """Without what FastAPI puts around our middleware, which catches and traces errors just as ours does: each layer
    costs every request something."""
    while not isinstance(stack, RequestMiddleware):
        stack = stack.app
    return stack


async def _send_on(forwarder: Forwarder, request: Request, error: Exception) -> Any:
    """An ASGI application for Starlette to call: the answer of the machine that the error names."""
    if not isinstance(error, HeldElsewhere):
        raise error
    if FORWARDED_CALLER in request.scope:  # whoever sent it here finds out where it belongs
        return error_response(error)
    return partial(_sent_on, forwarder, error)


async def _sent_on(forwarder: Forwarder, error: HeldElsewhere, scope: Scope, receive: Receive, send: Send) -> None:
    await forwarder.answer(scope, receive, send, error)


def _asked_most(services: CoreServices) -> list[DirectRoute]:
    return [
        DirectRoute(
            path=commits.COMMITS,
            body=CommitCreate,
            answer=lambda body, caller: commits.commit(body=body, caller=caller, services=services),
        ),
        DirectRoute(
            path=snapshots.CHECKOUTS,
            body=CheckoutRequest,
            answer=lambda body, caller: snapshots.checkout(body, caller, services),
        ),
    ]
