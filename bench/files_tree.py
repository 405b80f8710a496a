"""Listing, folder trees and sums of many files, in a project and in an open workspace, over HTTP."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
from tests.support.postgres import reachable_folder
from tests.support.server import start_server

from contextbase.sdk import Change, Client

__all__ = ["measure_tree"]

_ROUNDS: Final = 25
_BATCH: Final = 1000
_LISTED: Final = "listed"


def measure_tree(files: int) -> dict[str, float]:
    """Each question comes right after a file was written, so that no answer is one that was kept whole."""
    with reachable_folder(in_memory=False) as folder, start_server(folder / "data") as server:
        secret = (server.data / "owner-token").read_text().strip()
        with Client(server.url, secret) as client:
            print(f"committing {files:,} files …", file=sys.stderr)
            workspace = _filled(client, files)
            headers = {"Authorization": f"Bearer {secret}"}
            try:
                with httpx.Client(base_url=server.url, headers=headers, timeout=120) as http:
                    figures = _asked(http, "/api/v1/workspaces/me", {"project": "large"}, "")
                    figures |= _asked(http, "/api/v1/files/large", {}, "project_")
                return figures | _by_programs(workspace)
            finally:
                client.workspaces.abandon("large")


def _filled(client: Client, files: int) -> Path:
    client.projects.create("large")
    paths = [f"{_LISTED}/f{number}.txt" for number in range(min(_BATCH, files))]
    paths += [f"d{number // 1000}/s{number // 100}/f{number}.txt" for number in range(files - len(paths))]
    for start in range(0, files, _BATCH):
        changes = [Change(action="write", path=path, text=f"{path}\n") for path in paths[start : start + _BATCH]]
        client.commit("large", changes, base_seq=start // _BATCH)
    return Path(client.workspaces.create("large").path)


def _asked(http: httpx.Client, place: str, query: dict[str, str], prefix: str) -> dict[str, float]:
    questions = {
        "list": (f"{place}/list", query | {"path": _LISTED}),
        "tree": (f"{place}/tree", query),
        "info": (f"{place}/info", query),
    }
    took: dict[str, list[float]] = {name: [] for name in questions}
    for number in range(_ROUNDS + 1):
        for name, (address, asked) in questions.items():
            assert http.put(f"{place}/write/new/{name}.txt", params=query, content=f"{number}".encode()).is_success
            started = time.perf_counter()
            answer = http.get(address, params=asked)
            took[name].append(time.perf_counter() - started)
            assert answer.is_success, answer.text
    return {f"{prefix}{name}_ms": _milliseconds(times[1:]) for name, times in took.items()}


def _by_programs(folder: Path) -> dict[str, float]:
    def scandir() -> None:
        with os.scandir(folder / _LISTED) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)

    def find() -> None:
        subprocess.run(["find", folder, "-type", "d"], check=True, capture_output=True)

    return {"scandir_ms": _timed(scandir), "find_ms": _timed(find)}


def _timed(program: Callable[[], Any]) -> float:
    took = []
    for _ in range(5):
        started = time.perf_counter()
        program()
        took.append(time.perf_counter() - started)
    return _milliseconds(took)


def _milliseconds(times: list[float]) -> float:
    return round(1000 * median(times), 2)
