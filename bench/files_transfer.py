"""One large file up and down by curl, beside `cp` with an fsync."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Final

from tests.support.postgres import reachable_folder
from tests.support.server import start_server

from contextbase.sdk import Client

__all__ = ["measure_transfer"]

_MIB: Final = 1 << 20
_ROUNDS: Final = 3


def measure_transfer(mebibytes: int) -> dict[str, float]:
    """Everything is on one disk. In turns, because a disk has good and bad minutes; each makes a new file."""
    with reachable_folder(in_memory=False) as folder, start_server(folder / "data") as server:
        source, target = folder / "source.bin", folder / "target.bin"
        print(f"moving {mebibytes:,} MiB …", file=sys.stderr)
        _made(source, mebibytes)
        secret = (server.data / "owner-token").read_text().strip()
        header = folder / "header"
        header.write_text(f"Authorization: Bearer {secret}\n", encoding="utf-8")
        curl = ["curl", "-sS", "--fail", "-H", f"@{header}", "-H", "Expect:"]
        with Client(server.url, secret) as client:
            client.projects.create("large")
            client.workspaces.create("large")
            try:
                took = _moved(source, target, mebibytes * _MIB, curl, server.url)
            finally:
                client.workspaces.abandon("large")
    rates = {name: mebibytes * _MIB / 1e6 / median(times) for name, times in took.items()}
    figures = {f"{name}_mb_s": round(rate, 1) for name, rate in rates.items()}
    return figures | {f"{name}_ratio": round(rate / rates["cp"], 3) for name, rate in rates.items() if name != "cp"}


def _moved(source: Path, target: Path, size: int, curl: list[str], url: str) -> dict[str, list[float]]:
    places = {"": (f"{url}/api/v1/workspaces/me", "project=large"), "project_": (f"{url}/api/v1/files/large", "")}
    took: dict[str, list[float]] = {}
    for number in range(_ROUNDS):
        os.truncate(source, size - number - 1)  # other content each time: equal contents are stored once
        digest = _digest(source)
        took.setdefault("cp", []).append(_copied(source, target))
        for prefix, (place, query) in places.items():
            upload = [*curl, "-F", f"file=@{source}", f"{place}/upload?{query}", "-o", "/dev/null"]
            took.setdefault(f"{prefix}upload", []).append(_seconds(upload))
            name = "source.bin" if number == 0 else f"source%20({number}).bin"
            download = [*curl, "-o", str(target), f"{place}/download?{query}&path=upload/{name}"]
            target.unlink()
            took.setdefault(f"{prefix}download", []).append(_seconds(download))
            assert _digest(target) == digest
    return took


def _made(path: Path, mebibytes: int) -> None:
    block = os.urandom(_MIB)
    with path.open("wb") as file:
        for number in range(mebibytes):
            file.write(number.to_bytes(8, "big") + block[8:])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copied(source: Path, target: Path) -> float:
    target.unlink(missing_ok=True)
    started = time.perf_counter()
    subprocess.run(["cp", source, target], check=True)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return time.perf_counter() - started


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - started
