"""Serves the web workbench. It holds no data: everybody may load it, and it asks the API like everybody else."""

import secrets
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from contextbase.errors import NotFound
from contextbase.interfaces.api.plain_page import plain_page
from contextbase.interfaces.workbench.build import NONCE_MARK, PRELOADS_MARK, WorkbenchBuild

__all__ = ["SECTIONS", "router"]

router = APIRouter(include_in_schema=False)

SECTIONS: Final = ("projects", "review", "sessions", "inbox", "store", "admin", "account")
"""The first part of every address in the workbench; what follows is the page's own business."""

_FOREVER: Final = "public, max-age=31536000, immutable"
# Scripts and styles come from this server alone; the nonce is for style sheets that the editor makes as it runs.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_NOT_BUILT: Final = (
    "<p>This installation has no web workbench: its files were not built. The API, the command line and MCP work "
    "without it.</p><p>In a checkout, <code>make setup</code> builds it, with node 20 or newer or with the node that "
    "it fetches from PyPI. A wheel of contextbase has it inside.</p><p><a href='/docs'>API reference</a></p>"
)


@router.get("/")
async def page(request: Request) -> HTMLResponse:
    build: WorkbenchBuild = request.app.state.workbench
    if build.page is None:
        return plain_page("contextbase", _NOT_BUILT)
    nonce = secrets.token_urlsafe(16)
    html = build.page.replace(NONCE_MARK, nonce).replace(PRELOADS_MARK, build.preloads(request.url.path))
    return HTMLResponse(html, headers={"Content-Security-Policy": _POLICY.format(nonce=nonce)})


for _section in SECTIONS:
    router.add_api_route(f"/{_section}", page, methods=["GET"])
    router.add_api_route(f"/{_section}/{{rest:path}}", page, methods=["GET"])


@router.get("/assets/{name}")
async def asset(request: Request, name: str, accept_encoding: Annotated[str, Header()] = "") -> Response:
    build: WorkbenchBuild = request.app.state.workbench
    found = build.asset(name)
    if found is None:
        raise NotFound("There is no such asset. Reload the page: the server may have another version now.")
    headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
    if found.compressed is not None and "gzip" in accept_encoding:
        return FileResponse(
            found.compressed, media_type=found.media_type, headers=headers | {"Content-Encoding": "gzip"}
        )
    return FileResponse(found.path, media_type=found.media_type, headers=headers)
