"""The web workbench in a real browser: `python -m bench.web [--rows 100000] [--messages 2000] [--json]`.

`initial_kb_gz` is what the browser loads for the list of projects, scripts and styles, compressed.
`time_to_interactive_ms` is the time until that list is there, in a browser that has nothing yet. Then a folder of many
files and a conversation of many messages are opened, and scrolled from top to bottom, now and then with a leap:
`longest_frame_ms` is the longest time between two pictures in either. `reload_to_thread_ms` is the time from a reload
to the newest messages, without the browser's cache, the median of five. `input_delay_ms` is the time from a key to the
next picture while an answer comes in at 50 words a second, of 95 keys in 100. `accessibility` and `best_practices` are
the lowest scores of a few pages in Lighthouse.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
from tests.support.postgres import reachable_folder
from tests.support.run_world import remove_sandboxes
from tests.support.server import start_server
from tests.support.workspaces import unmount_all

from bench.web_lighthouse import lighthouse_figures

WEB = Path(__file__).parent.parent / "web"
_AT_ONCE = 10_000
_PAGES = ("/projects", "/projects/large/files/", "/sessions", "/admin/people")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="files in the folder")
    parser.add_argument("--messages", type=int, default=2_000, help="in the conversation")
    parser.add_argument("--pages", nargs="+", default=_PAGES, help="for Lighthouse")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.rows, options.messages, tuple(options.pages))
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:34} {value}")


def measure(rows: int, messages: int, pages: tuple[str, ...] = _PAGES) -> dict[str, Any]:
    with reachable_folder() as folder:
        try:
            with start_server(folder / "data") as server:
                owner = (server.data / "owner-token").read_text().strip()
                fill(server.url, owner, rows)
                node = shutil.which("node") or str(WEB.parent / ".venv" / "node" / "bin" / "node")
                done = subprocess.run(
                    [
                        node,
                        str(WEB / "node_modules" / "vitest" / "vitest.mjs"),
                        "run",
                        "--config",
                        "vitest.browser.config.ts",
                        "browser/measure.run.ts",
                    ],
                    cwd=WEB,
                    env=os.environ
                    | {
                        "WORKBENCH_URL": server.url,
                        "WORKBENCH_OWNER": owner,
                        "WORKBENCH_ROWS": str(rows),
                        "WORKBENCH_MESSAGES": str(messages),
                    },
                    capture_output=True,
                    text=True,
                    timeout=1200,
                    check=False,
                )
                scores = lighthouse_figures(server.url, owner, pages, node, folder)
        finally:
            asyncio.run(remove_sandboxes(folder / "data"))
            unmount_all(folder)
    line = next((line for line in done.stdout.splitlines() if "FIGURES" in line), None)
    assert line is not None, done.stdout + done.stderr
    figures: dict[str, Any] = json.loads(line.partition("FIGURES ")[2])
    return figures | scores


def fill(url: str, owner: str, rows: int) -> None:
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {owner}"}, timeout=300) as client:
        client.post("/api/v1/projects", json={"name": "large"}).raise_for_status()
        for start in range(0, rows, _AT_ONCE):
            changes = [
                {"action": "write", "path": f"all/file-{number:06}.md", "text": "x\n"}
                for number in range(start, min(rows, start + _AT_ONCE))
            ]
            body = {"project": "large", "base_seq": 0, "changes": changes}
            client.post("/api/v1/commits", json=body).raise_for_status()


if __name__ == "__main__":
    main()
