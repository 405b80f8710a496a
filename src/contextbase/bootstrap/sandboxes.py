"""Which driver runs sandboxes here, and with which limits."""

import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from contextbase.config import Settings
from contextbase.errors import ContextbaseError, MachineProblem, Unavailable
from contextbase.ids import new_uuid
from contextbase.limits import ResourceLimits
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.docker import DockerDriver
from contextbase.sandbox.model import Command, SandboxId, SandboxSpec
from contextbase.sandbox.native.driver import NativeDriver
from contextbase.sandbox.plain import PlainDriver
from contextbase.sandbox.ports import SandboxDriver
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import Owner

__all__ = ["limits_of", "sandbox_driver", "sandbox_kind"]


def limits_of(settings: Settings) -> ResourceLimits:
    """The most that a sandbox may use; whoever makes one may ask for less."""
    return ResourceLimits(
        max_memory=settings.sandbox.memory_bytes,
        max_cpu=settings.sandbox.cpu_percent,
        max_processes=settings.sandbox.processes,
        max_execution_time=settings.sandbox.seconds,
        max_output=settings.sandbox.output_bytes,
        max_disk=settings.workspaces.max_bytes,
    )


def sandbox_driver(settings: Settings, node: Machine) -> Callable[[], Awaitable[SandboxDriver]]:
    """What opens the driver at its first use."""
    return lambda: _open_driver(settings, node.root, owner=node.owner, node=node.name)


async def sandbox_kind(settings: Settings) -> str:
    """What sandboxes will be here, in a sentence, found out by making one; `Unavailable` when there can be none."""
    with tempfile.TemporaryDirectory() as folder:
        driver = await _open_driver(
            settings,
            Path(folder),
            owner=Owner.of_agents(settings.machine.agent_uid),
            node=f"doctor-{new_uuid().hex[:12]}",
        )
        try:
            held = await driver.limits_by() if isinstance(driver, NativeDriver) else "Limits are the engine's."
            return f"Commands run in {driver.name}. {held}"
        finally:
            await driver.close()


async def _open_driver(settings: Settings, root: Path, *, owner: Owner, node: str) -> SandboxDriver:
    """The one that is asked for, or else the first that works, found out by using it; `Unavailable` when none does."""
    makers: dict[str, Callable[[], SandboxDriver]] = {
        "bubblewrap": lambda: BubblewrapDriver(
            root / "bubblewrap", owner=owner, node=node, extra_read_only=settings.sandbox.extra_folders
        ),
        "docker": lambda: DockerDriver(
            node=node.lower(), owner=owner, image=settings.sandbox.image, address=settings.sandbox.docker_address
        ),
        "none": lambda: PlainDriver(
            root / "plain", owner=owner, node=node, isolation_not_wanted=settings.sandbox.without_isolation
        ),
    }
    wanted = ["bubblewrap", "docker"] if settings.sandbox.driver == "auto" else [settings.sandbox.driver]
    refusals = []
    for name in wanted:
        try:
            return await _tried(makers[name](), root)
        except ContextbaseError as error:
            refusals.append(f"{name}: {error.message}")
    raise Unavailable(
        f"No sandbox driver works on this server. {' '.join(refusals)} Run `contextbase doctor` for details."
    )


async def _tried(driver: SandboxDriver, root: Path) -> SandboxDriver:
    try:
        await _run_nothing(driver, root)
    except BaseException:
        await driver.close()
        raise
    return driver


async def _run_nothing(driver: SandboxDriver, root: Path) -> None:
    with tempfile.TemporaryDirectory(dir=root) as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - the agents' account looks into it
        spec = SandboxSpec(id=SandboxId(int=new_uuid().int), folder=Path(folder))
        outcome = await (await driver.run(spec, Command(argv=("/bin/true",), timeout=60))).wait()
        if not outcome.succeeded:
            raise MachineProblem(f"a command that does nothing fails in it (exit code {outcome.exit_code}).")
