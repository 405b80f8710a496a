"""Login and logout of browsers, and the API reference."""

import html
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from contextbase.errors import InvalidInput, Unauthenticated
from contextbase.interfaces.api.authentication import (
    COOKIE,
    AuthenticatedCaller,
    authenticate,
    origin_of,
    refuse_foreign_pages,
    services_of,
)
from contextbase.interfaces.api.login_codes import CODE_MINUTES, LoginCodes
from contextbase.interfaces.api.login_cookie import ended_cookie, log_browser_in
from contextbase.interfaces.api.plain_page import plain_page
from contextbase.wire.login import LoginCreate, LogoutCreate

__all__ = ["open_router", "router"]

open_router = APIRouter(include_in_schema=False)
router = APIRouter(include_in_schema=False)


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
        secret = await services.people.logins.start_with_token(token, origin=origin_of(request))
    except Unauthenticated as error:
        return plain_page("Login failed", f"<p>{html.escape(error.message)}</p>", status=401)
    return await log_browser_in(request, RedirectResponse("/", status_code=303), secret)


@open_router.post("/login")
async def log_in(request: Request, body: LoginCreate) -> Response:
    """For the workbench: with a login name and a password, with a link to choose a password by, or with a token that
    somebody pastes. It stays out of addresses and logs."""
    refuse_foreign_pages(request)
    people, origin = services_of(request).people, origin_of(request)
    if body.token is not None:
        secret = await people.logins.start_with_token(body.token, origin=origin)
    elif body.password is not None and body.login_name is not None:
        secret = await people.passwords.log_in(body.login_name, body.password, origin=origin)
    elif body.password is not None and body.link is not None:
        secret = await people.passwords.use_link(body.link, body.password, origin=origin)
    else:
        raise InvalidInput("Send a login name and a password, a link and a password, or a token.")
    return await log_browser_in(request, Response(status_code=204), secret)


@open_router.post("/logout")
async def log_out(request: Request, body: LogoutCreate) -> Response:
    """End this browser's login, or all of the person's."""
    refuse_foreign_pages(request)
    logins = services_of(request).people.logins
    if body.everywhere:
        await logins.end_own(await authenticate(request))
    await logins.end(request.cookies.get(COOKIE, ""))
    response = Response(status_code=204)
    response.raw_headers.append((b"set-cookie", ended_cookie(request.url.scheme)))
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
