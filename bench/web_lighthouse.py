"""What Lighthouse says of pages of the workbench, with the login of a browser."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
from tests.support.agent_clis import installed
from tests.support.require import require_program

__all__ = ["lighthouse_figures"]

_FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
_CATEGORIES = {"accessibility": "accessibility", "best_practices": "best-practices"}
_SECONDS = 240


def lighthouse_figures(url: str, owner: str, pages: tuple[str, ...], node: str, folder: Path) -> dict[str, Any]:
    """The lowest score of each category among these pages, of 100."""
    scores: dict[str, list[float]] = {name: [] for name in _CATEGORIES}
    for page in pages:
        categories = _report(f"{url}{page}", _cookie(url, owner), node, folder)["categories"]
        for name, category in _CATEGORIES.items():
            scores[name].append(100 * categories[category]["score"])
    return {name: round(min(found)) for name, found in scores.items()}


def _cookie(url: str, owner: str) -> str:
    headers = {"Origin": url, "Accept": "application/json"}
    answer = httpx.post(f"{url}/login", json={"token": owner}, headers=headers, timeout=60)
    answer.raise_for_status()
    return "; ".join(f"{name}={value}" for name, value in answer.cookies.items())


def _report(address: str, cookie: str, node: str, folder: Path) -> dict[str, Any]:
    headers, report = folder / "headers.json", folder / "report.json"
    headers.touch(mode=0o600)  # a login is no argument: those are for everybody to see
    headers.write_text(json.dumps({"Cookie": cookie}))
    program = installed("lighthouse") / "node_modules" / "lighthouse" / "cli" / "index.js"
    done = subprocess.run(
        [
            node,
            str(program),
            address,
            f"--extra-headers={headers}",
            f"--only-categories={','.join(_CATEGORIES.values())}",
            f"--chrome-flags={_FLAGS}",
            "--preset=desktop",
            "--no-enable-error-reporting",
            "--output=json",
            f"--output-path={report}",
            "--quiet",
        ],
        env=os.environ | {"CHROME_PATH": require_program("chromium", "apt-get install chromium")},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    report.unlink()
    return found
