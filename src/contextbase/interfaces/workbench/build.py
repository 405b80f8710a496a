"""The built workbench on disk: one page, and assets whose names hold a hash of their content."""

import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["NONCE_MARK", "WorkbenchAsset", "WorkbenchBuild"]

NONCE_MARK: Final = "__NONCE__"
"""Where the page takes the nonce of an answer; see web/index.html."""

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
