"""The executor as a process: it listens, keeps its journal and ends when it is told to."""

import asyncio
import fcntl
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

from contextbase import __version__
from contextbase.agents.kept_programs import ProgramKeeper
from contextbase.agents.model import AgentPlace
from contextbase.channel.stream import ChannelStream
from contextbase.executor.attachment import Attachments
from contextbase.executor.calls import Calls
from contextbase.executor.journal import EventJournal
from contextbase.executor.loopback import LoopbackPorts
from contextbase.executor.processes import MARK, RunProcesses
from contextbase.executor.run_calls import RunCalls
from contextbase.executor.runs import RunSupervisor
from contextbase.executor.setup_calls import SetupCalls
from contextbase.executor.terminals import Terminals
from contextbase.executor.workspace_calls import WorkspaceCalls

__all__ = ["main"]

_READY: Final = "CONTEXTBASE_READY"  # the descriptor that is told when it listens
_OWN: Final = "CONTEXTBASE_"
_RUNNING: Final = b"running"
_IDLE_PAUSE: Final = 5.0  # seconds from one look for an idle program to the next


def main() -> int:
    """`executor.pyz FOLDER BUILD`: the folder of its socket, and which build it is."""
    folder, build = Path(sys.argv[1]), sys.argv[2]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _tell_ready()
        return 0
    asyncio.run(_serve(folder, build))
    return 0


def _tell_ready() -> None:
    number = os.environ.pop(_READY, "")
    if number.isdecimal():
        os.write(int(number), _RUNNING)
        os.close(int(number))


async def _serve(folder: Path, build: str) -> None:
    home = Path(os.environ.get("HOME", "/home/agent"))
    journal = EventJournal(home / ".contextbase" / "journal.jsonl")
    about = {"executor": __version__, "build": build, "pid": os.getpid()}
    attachments = Attachments(lambda: {**about, "journal": journal.id, "last": journal.last})
    ports = LoopbackPorts(attachments)
    await ports.open()
    processes = RunProcesses()
    place = _place(home, ports)
    runs = RunSupervisor(journal=journal, place=place, processes=processes)
    terminals = Terminals(place, processes)
    groups = (RunCalls(runs=runs, journal=journal, about=about), WorkspaceCalls(place), SetupCalls(place), terminals)
    calls = Calls({name: handler for group in groups for name, handler in group.handlers().items()})

    async def opened(stream: ChannelStream) -> None:
        match stream.about.get("kind"):
            case "call":
                await calls.serve(stream)
            case "terminal":
                await terminals.serve(stream)
            case _:
                await stream.cut()

    await attachments.listen(folder / "executor.sock", opened)
    beside = [asyncio.create_task(work) for work in (processes.keep_reaping(), _keep_ending_idle(place.programs))]
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    _tell_ready()
    try:
        await ended.wait()
    finally:
        for task in beside:
            task.cancel()
        attachments.close()
        ports.close()
        await runs.close()
        await asyncio.gather(*beside, return_exceptions=True)
        journal.close()


async def _keep_ending_idle(programs: ProgramKeeper) -> None:
    while True:
        await asyncio.sleep(_IDLE_PAUSE)
        await programs.end_idle()


def _place(home: Path, ports: LoopbackPorts) -> AgentPlace:
    workspace = Path(os.environ.get("CONTEXTBASE_WORKSPACE", "/workspace"))
    proxy = ports.url("proxy")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    environment["PATH"] = f"{home}/.local/bin:{environment.get('PATH', '/usr/bin:/bin')}"  # what a setup installed
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        environment[name] = proxy
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = "127.0.0.1,localhost,::1"
    folders = filter(None, os.environ.get("CONTEXTBASE_AGENTS", "/opt/agents").split(":"))
    return AgentPlace(
        workspace=workspace,
        agent_data=workspace / ".agent_data",
        home=home,
        model_url=ports.url("model"),
        proxy_url=proxy,
        mcp_url=ports.url("mcp"),
        program_folders=tuple(Path(folder) for folder in folders),
        environment=environment,
        programs=ProgramKeeper(overlooked={MARK}),
    )
