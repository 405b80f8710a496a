"""`contextbase` as its users run it: a process of its own, driven by arguments, signals and its output."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Done", "ServerProcess", "processes_in", "run_cli", "start_machine", "start_server"]

PROGRAM = str(Path(sys.executable).parent / "contextbase")
_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, Any]:
        """What --json says about a failure: one line on standard error."""
        body: dict[str, Any] = json.loads(self.stderr)["error"]
        return body


def environment(**variables: str) -> dict[str, str]:
    """Nothing of ours but what is given, and output buffered as it is for users."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONTEXTBASE_", "PYTHONUNB"))}
    return kept | {"COLUMNS": "200", "NO_COLOR": "1"} | variables


def run_cli(*arguments: str, stdin: str = "", cwd: Path | None = None, **variables: str) -> Done:
    done = subprocess.run(
        [PROGRAM, *arguments],
        env=environment(**variables),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return Done(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


@dataclass(kw_only=True)
class ServerProcess:
    process: "subprocess.Popen[str]"
    data: Path
    log: Path
    ready: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        text = ""
        while line := self.process.stdout.readline():
            text += line
            if line == "}\n":
                self.ready = json.loads(text)
                return
        raise AssertionError(f"The server did not start: {self.log.read_text()}")

    def stop(self, signal_number: signal.Signals) -> int:
        self.process.send_signal(signal_number)
        return self.process.wait(_SECONDS)


@contextlib.contextmanager
def start_server(
    data: Path,
    *,
    wait: bool = True,
    port: str = "0",
    open_files: int | None = None,
    options: Sequence[str] = (),
    **variables: str,
) -> Iterator[ServerProcess]:
    """`contextbase up` on a free port, or this; killed with its database when the block ends, if it still runs.

    `open_files`: how many files it may open at the most, as `ulimit -n` has it."""
    arguments = ["up", "--port", port, *options]
    with _started(arguments, data, wait=wait, open_files=open_files, **variables) as server:
        yield server


@contextlib.contextmanager
def start_machine(data: Path, *, wait: bool = True, **variables: str) -> Iterator[ServerProcess]:
    """`contextbase machine`, likewise."""
    with _started(["machine"], data, wait=wait, open_files=None, **variables) as machine:
        yield machine


@contextlib.contextmanager
def _started(
    arguments: Sequence[str], data: Path, *, wait: bool, open_files: int | None, **variables: str
) -> Iterator[ServerProcess]:

    def limit() -> None:
        if open_files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

    log = data.with_name(data.name + ".log")
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [PROGRAM, *arguments, "--data", str(data), "--json"],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=limit,  # noqa: PLW1509 - it only sets a limit
        )
    server = ServerProcess(process=process, data=data, log=log)
    try:
        if wait:
            server.wait_until_ready()
        yield server
    finally:
        process.kill()
        for leftover in processes_in(data):
            with contextlib.suppress(psutil.NoSuchProcess):
                leftover.kill()
        process.communicate(timeout=_SECONDS)


def processes_in(data: Path) -> list[psutil.Process]:
    """PostgreSQL's living processes of a data folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and str(data / "postgres") in " ".join(process.cmdline()):
                found.append(process)
    return found
