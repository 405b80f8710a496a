"""The executor as one file that Python runs: packed from the installed package.

Beside each module is what this Python makes of it. Another version inside a sandbox passes over that and compiles the
module itself, which costs it a tenth of a second."""

import hashlib
import importlib.util
import io
import marshal
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
_NEVER_COMPARED: Final = 0b01


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedExecutor:
    content: bytes
    build: str  # of the modules


@cache
def packed_executor() -> PackedExecutor:
    root = files("contextbase")
    sources = {"__main__.py": _MAIN.encode(), "contextbase/__init__.py": (root / "__init__.py").read_bytes()}
    for part in _PARTS:
        for file in (root / part).iterdir():
            if _is_source(file):
                sources[f"contextbase/{part}/{file.name}"] = file.read_bytes()
    build = hashlib.sha256()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, source in sorted(sources.items()):
            build.update(b"%b %d " % (name.encode(), len(source)) + source)
            for entry, content in ((name, source), (f"{name}c", _compiled(name, source))):
                info = zipfile.ZipInfo(entry, _MOMENT)
                info.external_attr = 0o644 << 16
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return PackedExecutor(content=packed.getvalue(), build=build.hexdigest()[:16])


def _compiled(name: str, source: bytes) -> bytes:
    """As a `.pyc` that Python does not compare with its source (PEP 552)."""
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + _NEVER_COMPARED.to_bytes(4, "little") + importlib.util.source_hash(source)
    return header + marshal.dumps(code)


def _is_source(file: Traversable) -> bool:
    return file.is_file() and file.name.endswith(".py")
