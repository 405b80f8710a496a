"""The few pages for people: the start page, the login, and the API reference. Plain HTML, no scripts."""

import html
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from contextbase import __version__
from contextbase.errors import Unauthenticated
from contextbase.interfaces.api.authentication import COOKIE, AuthenticatedCaller, authenticate, services_of
from contextbase.interfaces.api.login_codes import CODE_MINUTES, LoginCodes

__all__ = ["open_router", "router"]

open_router = APIRouter(include_in_schema=False)
router = APIRouter(include_in_schema=False)

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; color: #1a1a1a }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem }
code, pre { font: 14px/1.45 ui-monospace, monospace; background: #f3f3f1; border-radius: 4px }
code { padding: .1rem .3rem } pre { padding: .8rem; overflow-x: auto } dt { font-weight: 600; margin-top: .8rem }
.method { display: inline-block; min-width: 4.5rem } a { color: #0b57d0 }
@media (prefers-color-scheme: dark) {
  body { background: #161616; color: #e8e8e8 } code, pre { background: #262626 } a { color: #8ab4f8 }
}
"""


@open_router.get("/")
async def start_page(request: Request) -> HTMLResponse:
    """What this is, who you are, how to connect; for a stranger, only how to log in."""
    try:
        caller = await authenticate(request)
    except Unauthenticated:
        return _page(
            "contextbase",
            "<p>A shared, versioned context base for AI agents.</p>"
            "<p>You are not logged in. Open the login address that <code>contextbase up</code> printed, or make one "
            "with <code>contextbase login</code> on the server's machine.</p>",
            status=401,
        )
    base = html.escape(services_of(request).settings.server.public_url or str(request.base_url).rstrip("/"))
    name = html.escape(caller.principal.name)
    allowed = ", ".join(sorted(caller.grant.actions))
    return _page(
        "contextbase",
        f"""<p>A shared, versioned context base for AI agents: each works in a private copy of a folder, and what it
changed comes back through one gate that merges it and keeps every version.</p>
<p>You are <b>{name}</b> ({caller.principal.kind}); this login allows: {allowed}. Version {__version__}.</p>
<h2>Connect an agent</h2>
<p>Make it a token, and give it this address:</p>
<pre>contextbase token create my-agent
export CONTEXTBASE_URL={base}
export CONTEXTBASE_TOKEN=cb_…
contextbase project list</pre>
<p>Or over HTTP: <code>curl -H "Authorization: Bearer $CONTEXTBASE_TOKEN" {base}/api/v1/me</code></p>
<p><a href="/docs">API reference</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/metrics">metrics</a> ·
<a href="/logout">log out</a></p>""",
    )


@open_router.get("/login")
async def login(
    request: Request,
    token: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Exchange the token, or the code for one login, in an address for a cookie, and drop it from the address bar."""
    services = services_of(request)
    if code:
        codes: LoginCodes = request.app.state.login_codes
        if not codes.take(code):
            return _page(
                "Login failed",
                f"<p>This address was used already, or is older than {CODE_MINUTES} minutes. Make another with "
                "<code>contextbase login</code> on the server's machine.</p>",
                status=401,
            )
        token = services.data.read_owner_token() or ""
    try:
        await services.identity.authenticate(token)
    except Unauthenticated as error:
        return _page("Login failed", f"<p>{html.escape(error.message)}</p>", status=401)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https", max_age=30 * 86400
    )
    return response


@open_router.get("/logout")
async def logout() -> Response:
    response = RedirectResponse("/", status_code=303)
    response.delete_cookie(COOKIE)
    return response


@router.get("/openapi.json")
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


@router.get("/docs")
async def docs(request: Request, caller: AuthenticatedCaller) -> HTMLResponse:  # noqa: ARG001 - demands a caller
    """The API reference, written from the OpenAPI document."""
    document: dict[str, Any] = request.app.openapi()
    sections = [
        f"<dt><span class=method>{method.upper()}</span> <code>{html.escape(path)}</code></dt>"
        f"<dd>{html.escape(operation.get('description') or operation.get('summary', ''))}</dd>"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    return _page(
        "API reference",
        f"<p>Every request but health carries <code>Authorization: Bearer cb_…</code>. Errors are "
        f"<code>application/problem+json</code> with a stable <code>code</code>. Bodies and fields: "
        f"<a href=/openapi.json>OpenAPI 3.1</a>.</p><dl>{''.join(sections)}</dl>",
    )


def _page(title: str, body: str, *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style><h1>{html.escape(title)}</h1>{body}</html>",
        status_code=status,
    )
