"""Puts routes, authentication, errors and middleware together."""

from fastapi import Depends, FastAPI

from contextbase import __version__
from contextbase.bootstrap import Services
from contextbase.interfaces.api.authentication import authenticate
from contextbase.interfaces.api.metrics import Metrics
from contextbase.interfaces.api.middleware import RequestMiddleware
from contextbase.interfaces.api.problems import install_problem_handlers
from contextbase.interfaces.api.routes import (
    commits,
    feed,
    health,
    history,
    pages,
    policies,
    projects,
    snapshots,
    system,
    tokens,
)
from contextbase.wire.problem import PROBLEM_TYPE, Problem

__all__ = ["create_app"]


def create_app(services: Services) -> FastAPI:
    """The ASGI application over services that are open for as long as it runs."""
    problem = {"content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    app = FastAPI(
        title="contextbase",
        version=__version__,
        description="A shared, versioned context base for AI agents.",
        openapi_url=None,  # served by routes/pages.py, behind authentication like everything else
        docs_url=None,
        redoc_url=None,
        responses={
            "4XX": {"description": "The caller can mend it.", "model": Problem, **problem},
            "5XX": {"description": "The server's problem.", "model": Problem, **problem},
        },
    )
    app.state.services = services
    app.state.metrics = Metrics(services.metrics)
    # Deny by default: what is not named below these needs a caller. What is asked for most is looked for first.
    for module in (commits, snapshots, feed, history, policies, projects, tokens, system, pages):
        app.include_router(module.router, dependencies=[Depends(authenticate)])
    app.include_router(health.router)
    app.include_router(pages.open_router)
    install_problem_handlers(app)
    app.add_middleware(
        RequestMiddleware,
        metrics=app.state.metrics,
        max_request_bytes=services.settings.max_request_bytes,
        larger={commits.UPLOADS: services.settings.max_upload_bytes},
    )
    return app
