"""The built workbench on disk: one page, and assets whose names hold a hash of their content."""

import json
import mimetypes
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

__all__ = ["NONCE_MARK", "PRELOADS_MARK", "WorkbenchAsset", "WorkbenchBuild"]

NONCE_MARK: Final = "__NONCE__"
"""Where the page takes the nonce of an answer; see web/index.html."""
PRELOADS_MARK: Final = "<!-- __PRELOADS__ -->"
"""Where the page takes the links to what its address needs first."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class WorkbenchAsset:
    path: Path
    compressed: Path | None  # the same in gzip
    media_type: str


@dataclass(frozen=True)
class WorkbenchBuild:
    folder: Path = Path(__file__).parent / "static"

    @property
    def page(self) -> str | None:
        """The HTML with its mark; None where the workbench was not built. Read each time: it may be built anew."""
        try:
            return (self.folder / "index.html").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def preloads(self, path: str) -> str:
        """Links to the code and the data that the page at this path asks for first; web/preloads.ts says which.

        The browser follows them while it reads the HTML, instead of after the scripts that would ask have run."""
        try:
            pages = json.loads((self.folder / "preloads.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ""
        links = []
        for page in pages:
            if (match := re.fullmatch(page["path"], path)) is None:
                continue
            data = [address.replace("{}", match[1]) if match.groups() else address for address in page["data"]]
            links += [f'<link rel="preload" as="fetch" crossorigin href="{escape(address)}">' for address in data]
            links += [f'<link rel="modulepreload" crossorigin href="{escape(name)}">' for name in page["modules"]]
        return "\n    ".join(links)

    def asset(self, name: str) -> WorkbenchAsset | None:
        path = self.folder / "assets" / name
        if not _NAME.fullmatch(name) or not path.is_file():
            return None
        compressed = path.with_name(f"{name}.gz")
        return WorkbenchAsset(
            path=path,
            compressed=compressed if compressed.is_file() else None,
            media_type=_TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream",
        )


_TYPES: Final = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
"""Not left to the machine's own table, which may lack them or have others."""
