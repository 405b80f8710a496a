"""Commands of agents over a real gate, a real database, real workspaces and real sandboxes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.support.require import require_program
from tests.support.workspace_world import WorkspaceWorld, open_world

from contextbase.commands.model import CommitWhen, KeptWorkspace, RunRequest, RunStep, Started
from contextbase.commands.sandboxes import SandboxStatus
from contextbase.commands.shell import continued, shell_argv
from contextbase.data_folder import DataFolder
from contextbase.db.database import DatabaseAddress
from contextbase.identity.model import Caller
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.model import WORKSPACE, Command, CommandOutcome, Network, Output, SandboxId
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import Owner
from contextbase.workspaces.service import Completed

__all__ = ["RunWorld", "Told", "open_run_world", "remove_sandboxes"]

LONGEST = 60.0


@dataclass(frozen=True)
class Told:
    """What a run came to."""

    steps: tuple[RunStep, ...]

    @property
    def output(self) -> str:
        return b"".join(step.data for step in self.steps if isinstance(step, Output)).decode()

    @property
    def outcome(self) -> CommandOutcome:
        [outcome] = [step for step in self.steps if isinstance(step, CommandOutcome)]
        return outcome

    @property
    def started(self) -> Started:
        assert isinstance(self.steps[0], Started)
        return self.steps[0]

    @property
    def end(self) -> Completed | KeptWorkspace:
        assert isinstance(self.steps[-1], Completed | KeptWorkspace)
        return self.steps[-1]


@dataclass
class RunWorld:
    world: WorkspaceWorld

    def request(self, text: str, when: CommitWhen = CommitWhen.SUCCESS) -> RunRequest:
        return RunRequest(
            command=Command(argv=shell_argv(text), timeout=LONGEST),
            limits=self.world.agents.sandbox_limits,
            commit_when=when,
            wish=Wish(),
        )

    async def run(
        self, text: str, agent: str | None = None, *, when: CommitWhen = CommitWhen.SUCCESS, who: Caller | None = None
    ) -> Told:
        """As the owner, who may make agents."""
        world = self.world
        steps = world.agents.runs.run(
            who or world.owner,
            world.project_id,
            agent,
            self.request(text, when),
        )
        async with asyncio.timeout(LONGEST):
            return Told(tuple([step async for step in steps]))

    async def sandbox(self, who: Caller, network: Network = Network.NONE) -> SandboxStatus:
        agents = self.world.agents
        status, _ = await agents.sandboxes.create(
            who, self.world.project_id, None, limits=agents.sandbox_limits, network=network, environment={}
        )
        return status

    async def exec(self, who: Caller, sandbox_id: SandboxId, text: str) -> tuple[str, CommandOutcome]:
        command = Command(
            argv=continued(text, sandbox_id, is_placed=False), cwd=WORKSPACE / PurePosixPath("."), timeout=LONGEST
        )
        execution = await self.world.agents.sandboxes.exec(who, sandbox_id, command)
        async with asyncio.timeout(LONGEST):
            written = b"".join([piece.data async for piece in execution.output()])
            return written.decode(), await execution.wait()


@asynccontextmanager
async def open_run_world(address: DatabaseAddress, folder: Path, **options: object) -> AsyncIterator[RunWorld]:
    require_program("bwrap", "apt-get install bubblewrap")
    options = {"sandbox_driver": "bubblewrap", **options}
    async with open_world(address, folder, "overlay", **options) as world:
        try:
            yield RunWorld(world)
        finally:
            await remove_sandboxes(folder)


async def remove_sandboxes(data: Path) -> None:
    """Those that are left on a data folder: they outlive the server that made them."""
    root = DataFolder(data).node / "bubblewrap"
    if root.exists():
        driver = BubblewrapDriver(root, owner=Owner.of_agents(None), node=DataFolder(data).node_name())
        for info in await driver.found():
            await driver.remove(info.id)
        await driver.close()
