"""Somebody who follows a document: `contextbase up` in one terminal, all blocks pasted into one shell in another."""

import asyncio
import contextlib
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.support.postgres import reachable_folder
from tests.support.require import unavailable
from tests.support.run_world import remove_sandboxes
from tests.support.server import PROGRAM, processes_in
from tests.support.workspaces import unmount_all

__all__ = ["Block", "Reader", "blocks_of", "reader"]

_SECONDS = 240
_PORT = 8787
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?```(?P<language>sh|python)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# A network of the reader's own, where the port is free whatever else runs on this machine; its loopback starts down.
_UP = (
    "import fcntl, os, socket, struct, sys\n"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 1))\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)


@dataclass(frozen=True, kw_only=True)
class Block:
    language: str
    text: str
    not_run: str | None  # why


def blocks_of(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    found = [Block(language=m["language"], text=m["text"], not_run=m["reason"]) for m in _BLOCK.finditer(text)]
    assert len(found) == len(re.findall(r"^```(?:sh|python)$", text, re.MULTILINE))
    return found


@dataclass(frozen=True, kw_only=True)
class Reader:
    folder: Path
    environment: dict[str, str]
    enter: list[str]  # what brings a program into the reader's network

    def follow(self, document: Path) -> list[str]:
        """What each block that is run printed; fails the test at the first command that fails."""
        blocks = [block for block in blocks_of(document) if block.not_run is None]
        mark = "=== the next block ==="
        script = [f"exec 2>&1\nset -e -o pipefail\necho '{mark}'\n"]
        for number, (language, several) in enumerate(itertools.groupby(blocks, key=lambda block: block.language)):
            if language == "sh":
                script.extend(f"{block.text}echo '{mark}'\n" for block in several)
            else:  # Python blocks in a row go into one process
                file = self.folder / f"blocks-{number}.py"
                file.write_text("".join(f"{block.text}print('{mark}', flush=True)\n" for block in several))
                script.append(f"python {file}\n")
        done = subprocess.run(
            [*self.enter, "bash", "-c", "".join(script)],
            cwd=self.folder / "checkout",
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        _, *printed = done.stdout.split(mark + "\n")
        if done.returncode != 0:
            failed = blocks[len(printed) - 1]
            raise AssertionError(f"{document.name}: this block fails:\n{failed.text}\n{printed[-1]}{done.stderr}")
        return printed[:-1]


@contextlib.contextmanager
def reader() -> Iterator[Reader]:
    """Somebody with a fresh home and nothing set, whose server runs in the folder they are in."""
    with reachable_folder() as folder:
        for name in ("home", "checkout"):
            (folder / name).mkdir(mode=0o755)
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"PATH": programs, "HOME": str(folder / "home"), "LANG": "C.UTF-8", "TERM": "dumb"}
        try:
            with _server(folder / "checkout", environment) as enter:
                yield Reader(folder=folder, environment=environment, enter=enter)
        finally:
            asyncio.run(remove_sandboxes(folder / "checkout" / ".contextbase-data"))
            unmount_all(folder)


@contextlib.contextmanager
def _server(folder: Path, environment: dict[str, str]) -> Iterator[list[str]]:
    own_network = os.geteuid() == 0 and shutil.which("unshare") is not None and shutil.which("nsenter") is not None
    if own_network:
        command = ["unshare", "--net", sys.executable, "-c", _UP, PROGRAM, "up"]
    else:
        _require_free_port()
        command = [PROGRAM, "up"]
    log = folder.with_name("server.log")
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    try:
        assert process.stdout is not None
        said = ""
        while "Stop with Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, f"The server did not start: {said}{log.read_text()}"
            said += line
        yield ["nsenter", f"--net=/proc/{process.pid}/ns/net", "--"] if own_network else []
    finally:
        process.terminate()
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
            for leftover in processes_in(folder / ".contextbase-data"):
                with contextlib.suppress(psutil.NoSuchProcess):
                    leftover.kill()
            process.wait(60)


def _require_free_port() -> None:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", _PORT))
        except OSError:
            unavailable(
                f"A reader's server needs port {_PORT}, which is taken. Stop what uses it, or run this as root."
            )
