"""The executor as one file that Python runs: packed from the installed package, the same bytes each time."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

__all__ = ["PackedExecutor", "packed_executor"]

_PARTS: Final = ("channel", "agents", "executor")
_MAIN: Final = "import sys\nfrom contextbase.executor.program import main\nsys.exit(main())\n"
_MOMENT: Final = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedExecutor:
    content: bytes
    build: str  # of the content


@cache
def packed_executor() -> PackedExecutor:
    root = files("contextbase")
    sources = {"__main__.py": _MAIN.encode(), "contextbase/__init__.py": (root / "__init__.py").read_bytes()}
    for part in _PARTS:
        for file in (root / part).iterdir():
            if _is_source(file):
                sources[f"contextbase/{part}/{file.name}"] = file.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(sources.items()):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    content = packed.getvalue()
    return PackedExecutor(content=content, build=hashlib.sha256(content).hexdigest()[:16])


def _is_source(file: Traversable) -> bool:
    return file.is_file() and file.name.endswith(".py")
