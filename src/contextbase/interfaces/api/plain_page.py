"""Plain HTML without scripts, for what must also work without the workbench."""

import base64
import html
from hashlib import sha256
from typing import Final

from fastapi.responses import HTMLResponse

__all__ = ["plain_page"]

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; color: #1d1d1b }
h1 { font-size: 1.6rem } code { font: 14px/1.45 ui-monospace, monospace; background: #f4f4f2; border-radius: 4px }
code { padding: .1rem .3rem } dt { font-weight: 600; margin-top: .8rem }
.method { display: inline-block; min-width: 4.5rem } a { color: #2f5fd0 }
@media (prefers-color-scheme: dark) {
  body { background: #141413; color: #ecebe6 } code { background: #1a1a19 } a { color: #8fb0ff }
}
"""
_HASH: Final = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; base-uri 'none'"


def plain_page(title: str, body: str, *, status: int = 200) -> HTMLResponse:
    """`body` is HTML: whoever calls this escapes what is not ours."""
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style><h1>{html.escape(title)}</h1>{body}</html>",
        status_code=status,
        headers={"Content-Security-Policy": _POLICY},
    )
