"""Login and logout of browsers, and the API reference."""

import html
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from contextbase.errors import Unauthenticated
from contextbase.interfaces.api.authentication import COOKIE, AuthenticatedCaller, refuse_foreign_pages, services_of
from contextbase.interfaces.api.login_codes import CODE_MINUTES, LoginCodes
from contextbase.interfaces.api.plain_page import plain_page
from contextbase.wire.system import LoginCreate

__all__ = ["open_router", "router"]

open_router = APIRouter(include_in_schema=False)
router = APIRouter(include_in_schema=False)

_LOGIN_SECONDS = 30 * 86400


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
            return plain_page(
                "Login failed",
                f"<p>This address was used already, or is older than {CODE_MINUTES} minutes. Make another with "
                "<code>contextbase login</code> on the server's machine.</p>",
                status=401,
            )
        token = services.data.read_owner_token() or ""
    try:
        await services.identity.authenticate(token)
    except Unauthenticated as error:
        return plain_page("Login failed", f"<p>{html.escape(error.message)}</p>", status=401)
    return _logged_in(request, RedirectResponse("/", status_code=303), token)


@open_router.post("/login")
async def login_with_token(request: Request, body: LoginCreate) -> Response:
    """For the workbench, where somebody pastes a token. It stays out of addresses and logs."""
    refuse_foreign_pages(request)
    await services_of(request).identity.authenticate(body.token)
    return _logged_in(request, Response(status_code=204), body.token)


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
    return plain_page(
        "API reference",
        f"<p>Every request but health carries <code>Authorization: Bearer cb_…</code>. Errors are "
        f"<code>application/problem+json</code> with a stable <code>code</code>. Bodies and fields: "
        f"<a href=/openapi.json>OpenAPI 3.1</a>.</p><dl>{''.join(sections)}</dl>",
    )


def _logged_in(request: Request, response: Response, token: str) -> Response:
    response.set_cookie(
        COOKIE,
        token,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=_LOGIN_SECONDS,
    )
    return response
