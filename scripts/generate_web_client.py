"""Generates the types of the workbench's API client from the server's OpenAPI document.

    python scripts/generate_web_client.py            write them
    python scripts/generate_web_client.py --check    exit 1 if they are not up to date

Errors are left out of the document first: they have one shape, and would be three quarters of the file."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from build_web import WEB, install_packages, node_folder
from prometheus_client import CollectorRegistry

from contextbase.config import Settings
from contextbase.interfaces.api.app import create_app

TARGET = WEB / "src" / "api" / "schema.d.ts"
GENERATOR = WEB / "node_modules" / "openapi-typescript" / "bin" / "cli.js"


def main() -> int:
    install_packages()
    wanted = generated(document())
    if sys.argv[1:] != ["--check"]:
        TARGET.write_text(wanted, encoding="utf-8")
        return 0
    if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != wanted:
        print("web client: not up to date: run `make format`")
        return 1
    print("web client: up to date")
    return 0


def document() -> dict[str, Any]:
    """As the server serves it; it needs no database for that."""
    core = SimpleNamespace(settings=Settings(), metrics=CollectorRegistry())
    found: dict[str, Any] = create_app(MagicMock(core=core, machine=None)).openapi()
    for operations in found["paths"].values():
        for operation in operations.values():
            answers = operation["responses"].items()
            operation["responses"] = {status: answer for status, answer in answers if status.startswith("2")}
    return dict(without_titles(found))


def without_titles(value: Any) -> Any:
    """Pydantic repeats every field's name as its title."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name != "title" or not isinstance(one, str)}
        return {name: without_titles(one) for name, one in kept.items()}
    return [without_titles(one) for one in value] if isinstance(value, list) else value


def generated(found: dict[str, Any]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "openapi.json", Path(folder) / "schema.d.ts"
        source.write_text(json.dumps(found), encoding="utf-8")
        node = str((node_folder() or Path()) / "node") if node_folder() else "node"
        subprocess.run([node, str(GENERATOR), str(source), "-o", str(target)], check=True, capture_output=True)
        return target.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
