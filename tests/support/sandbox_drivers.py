"""Drivers of sandboxes, one entry for each way that a test can have one, and a place on disk to use them in."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from tests.support.docker_engine import DockerEngine
from tests.support.require import unavailable

from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.cgroups import find_groups
from contextbase.sandbox.docker import DockerDriver
from contextbase.sandbox.model import Command, CommandOutcome, OutputStream, SandboxId, SandboxSpec
from contextbase.sandbox.plain import PlainDriver
from contextbase.sandbox.ports import Execution, SandboxDriver
from contextbase.workspaces.model import Owner

__all__ = ["IMPLEMENTATIONS", "Finished", "Implementation", "Site", "agents_owner", "finish", "shell"]

_PYTHON = str(Path(sys.executable).resolve())
_BOUND = 60
"""Seconds that nothing in these tests takes, unless it hangs."""


def agents_owner() -> Owner:
    """An account that nobody has; who is not root can only be itself."""
    return Owner(uid=61184, gid=61184) if os.geteuid() == 0 else Owner.of_this_process()


@dataclass(kw_only=True)
class Site:
    """A node in a temporary folder. At the end the drivers of it are closed and their sandboxes removed."""

    folder: Path
    open: Callable[[], SandboxDriver]  # another driver of the same node, as after a restart
    owner: Owner
    holds_files: bool = False  # the sandbox has its files itself: no folder is bound
    python: str | None = None  # the path of a Python inside, if there is one
    has_groups: bool = (
        True  # memory, processes and the processor are limited for all together, and what was used is told
    )
    drivers: list[SandboxDriver] = field(default_factory=list)

    def require_groups(self) -> None:
        if not self.has_groups:
            unavailable("This test needs control groups that we may use. To have them: sudo make test")

    def require_python(self) -> str:
        if self.python is None:
            unavailable("This test needs a Python inside the sandbox.")
        return str(self.python)

    def driver(self) -> SandboxDriver:
        driver = self.open()
        self.drivers.append(driver)
        return driver

    def workspace(self, name: str = "workspace") -> Path:
        """A folder that belongs to the agents."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(place, self.owner.uid, self.owner.gid)
        return place

    def spec(self, *, workspace: str = "workspace", **values: Any) -> SandboxSpec:
        folder = None if self.holds_files else self.workspace(workspace)
        return SandboxSpec(**{"id": SandboxId(str(uuid4())), "folder": folder, **values})

    async def once(self, driver: SandboxDriver, spec: SandboxSpec, command: Command) -> "Finished":
        """In a sandbox of its own, of which nothing runs afterwards."""
        if spec.folder is not None:
            return await finish(await driver.run(spec, command))
        await driver.create(spec)
        await driver.start(spec.id)
        finished = await finish(await driver.exec(spec.id, command))
        await driver.stop(spec.id)
        return finished

    async def clean_up(self) -> None:
        last = self.open()
        for info in await last.found():
            if info.holds_files:
                await last.stop(info.id)
            else:
                await last.remove(info.id)
        for driver in (*self.drivers, last):
            await driver.close()


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """`missing` says why it cannot be used here, if so."""

    make: Callable[[Path, Any], AbstractAsyncContextManager[Site]]  # with the value of the fixture
    missing: Callable[[], str | None] = lambda: None
    fixture: str | None = None  # of pytest's, that it needs
    binds_folders: bool = True
    can_hold_files: bool = False  # its driver also makes sandboxes without a folder
    keeps_leftovers: bool = True  # what a command leaves running in a sandbox that stays goes on
    tells_leftovers_apart: bool = True  # one command's from another's
    is_isolated: bool = True  # commands are kept from the machine: the escape tests are for it
    tells_signals: bool = True  # an exit code of 137 is told from SIGKILL

    @asynccontextmanager
    async def site(self, folder: Path, given: object) -> AsyncIterator[Site]:
        reason = self.missing()
        if reason is not None:
            unavailable(reason)
        async with self.make(folder, given) as site:
            try:
                yield site
            finally:
                await site.clean_up()


@asynccontextmanager
async def bubblewrap_site(folder: Path, _: object) -> AsyncIterator[Site]:
    owner = agents_owner()
    node = f"test-{uuid4().hex[:12]}"
    own = Path(sys.base_prefix)
    extra = () if own.is_relative_to("/usr") else (own,)

    def connect() -> SandboxDriver:
        return BubblewrapDriver(folder / "node", owner=owner, node=node, extra_read_only=extra)

    groups, _ = find_groups(node)
    yield Site(folder=folder, open=connect, owner=owner, python=_PYTHON, has_groups=groups is not None)


@asynccontextmanager
async def plain_site(_: Path, __: object) -> AsyncIterator[Site]:
    """In a folder that the agents' account can get to."""
    owner = agents_owner()
    node = f"test-{uuid4().hex[:12]}"
    with TemporaryDirectory(prefix="contextbase-plain-") as name:
        folder = Path(name)
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - the agents' account must get through

        def connect() -> SandboxDriver:
            return PlainDriver(folder / "node", owner=owner, node=node, home=folder / "home", isolation_not_wanted=True)

        groups, _sentence = find_groups(node)
        python = shutil.which("python3", path="/usr/bin")
        yield Site(folder=folder, open=connect, owner=owner, python=python, has_groups=groups is not None)


def _bubblewrap_missing() -> str | None:
    if sys.platform != "linux":
        return "bubblewrap sandboxes need Linux."
    return None if shutil.which("bwrap") else "This test needs bubblewrap. To get it: apt-get install bubblewrap"


def _plain_missing() -> str | None:
    return None if sys.platform == "linux" else "Commands run under limits on Linux only."


def docker_site(*, holds_files: bool) -> Callable[[Path, DockerEngine], AbstractAsyncContextManager[Site]]:
    @asynccontextmanager
    async def made(folder: Path, engine: DockerEngine) -> AsyncIterator[Site]:
        owner = Owner(uid=61184, gid=61184)
        node = f"test-{uuid4().hex[:12]}"

        def connect() -> SandboxDriver:
            return DockerDriver(node=node, owner=owner, image=engine.image, address=engine.address)

        yield Site(folder=folder, open=connect, owner=owner, holds_files=holds_files, python="/usr/bin/python3")

    return made


IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "bubblewrap": Implementation(make=bubblewrap_site, missing=_bubblewrap_missing),
    "none": Implementation(make=plain_site, missing=_plain_missing, is_isolated=False, keeps_leftovers=False),
    "docker-folder": Implementation(
        make=docker_site(holds_files=False),
        fixture="docker_engine",
        can_hold_files=True,
        tells_signals=False,
        tells_leftovers_apart=False,
    ),
    "docker-container": Implementation(
        make=docker_site(holds_files=True),
        fixture="docker_engine",
        can_hold_files=True,
        tells_signals=False,
        tells_leftovers_apart=False,
        binds_folders=False,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Finished:
    outcome: CommandOutcome
    stdout: str
    stderr: str


async def finish(execution: Execution) -> Finished:
    """Read it to its end."""
    written = {OutputStream.STDOUT: b"", OutputStream.STDERR: b""}
    async with asyncio.timeout(_BOUND):
        async for output in execution.output():
            written[output.stream] += output.data
        outcome = await execution.wait()
    texts = {stream: data.decode(errors="replace") for stream, data in written.items()}
    return Finished(outcome=outcome, stdout=texts[OutputStream.STDOUT], stderr=texts[OutputStream.STDERR])


def shell(text: str, **values: Any) -> Command:
    return Command(argv=("/bin/sh", "-c", text), **values)
