"""One command by one agent, from the head and back: a workspace, a sandbox, the command, and what it changed."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from secrets import token_hex

from contextbase.commands.audit_rows import record_command
from contextbase.commands.conversation import answers
from contextbase.commands.driver import MachineDriver
from contextbase.commands.model import CommitWhen, KeptWorkspace, RunRequest, RunStep, Started
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.program_log import ProgramLog, program_of
from contextbase.errors import Conflict, ContextbaseError, TooBusy
from contextbase.files.service import FileService
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, new_uuid
from contextbase.sandbox.model import CommandOutcome, SandboxId, SandboxSpec
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.repository import WorkspaceRecord
from contextbase.workspaces.service import Completed, WorkspaceService

__all__ = ["CommandService"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    caller: Caller
    agent: str | None
    workspace: WorkspaceRecord
    request: RunRequest

    @property
    def named(self) -> NamedWorkspace:
        return NamedWorkspace(self.workspace.project_id, self.agent)


@dataclass(kw_only=True, slots=True)
class CommandService:
    """`most` commands run at the same time; one more is `TooBusy`."""

    workspaces: WorkspaceService
    occupancy: Occupancy
    driving: MachineDriver
    activity: Activity
    files: FileService
    most: int
    _running: int = field(init=False, default=0)
    _clearing: set[asyncio.Task[None]] = field(init=False, default_factory=set)

    async def run(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None,
        request: RunRequest,
    ) -> AsyncGenerator[RunStep, None]:
        """The steps as they happen. Whoever stops reading ends the command; what it had changed stays in its workspace.

        The agent has a workspace for this alone: `Conflict` when it has one open. Without a name it is an agent of its
        own for who may make agents, else the caller."""
        caller.require(Action.WRITE, project_id)
        if self._running >= self.most:
            raise TooBusy(f"{self._running} commands run on this server now, the most it takes; try again later.")
        self._running += 1
        try:
            agent = agent or _name_of_new(caller)
            created = await self.workspaces.create(caller, project_id, agent, folder=request.folder)
            if not created.is_new:
                raise Conflict(
                    f"{created.record.principal.name} has an open workspace; complete or abandon it, or let another "
                    "agent run the command."
                )
            run = _Run(caller=caller, agent=agent, workspace=created.record, request=request)
            async with aclosing(self._steps(run)) as steps:
                async for step in steps:
                    yield step
        finally:
            self._running -= 1

    async def close(self) -> None:
        await asyncio.gather(*self._clearing, return_exceptions=True)

    async def _steps(self, run: _Run) -> AsyncGenerator[RunStep, None]:
        try:
            with self.occupancy.entered(run.workspace.id):
                driver = await self.driving.driver()
                await self._record(run)
                execution = await driver.run(_spec(run), run.request.command)
                log = self._log(run)
                try:
                    yield Started(workspace=run.workspace)
                    async with aclosing(answers(execution, run.request.given, log)) as pieces:
                        async for piece in pieces:
                            yield piece
                    outcome = await execution.wait()
                finally:
                    await execution.kill()
                if log is not None:
                    await log.save()
        except ContextbaseError:
            await self._clear(run)
            raise
        except BaseException:  # given up: whoever did will not wait
            self._clear_later(run)
            raise
        yield outcome
        try:
            settled = await self._settle(run, outcome)
        except ContextbaseError as error:
            raise _with_place(error, run.workspace) from error
        yield settled

    def _log(self, run: _Run) -> ProgramLog | None:
        if not run.request.keeps_log:
            return None
        place = self.files.workspace(run.caller, replace(run.named, id=run.workspace.id))
        return ProgramLog(place=place, program=program_of(run.request.command))

    async def _record(self, run: _Run) -> None:
        """Before it runs: no command goes without a row."""
        await record_command(self.activity, run.caller, run.workspace, run.request.command)

    async def _settle(self, run: _Run, outcome: CommandOutcome) -> Completed | KeptWorkspace:
        when = run.request.commit_when
        commits = when is CommitWhen.ALWAYS or (when is CommitWhen.SUCCESS and outcome.succeeded)
        if not commits and await self._holds_work(run):
            because = "you asked for no commit" if when is CommitWhen.NEVER else "the command failed"
            return KeptWorkspace(workspace=run.workspace, because=because)
        return await self.workspaces.complete(run.caller, run.named, wish=run.request.wish)

    async def _holds_work(self, run: _Run) -> bool:
        _, look = await self.workspaces.status(run.caller, run.named)
        return bool(look.changes or look.found.reported or look.left)

    async def _clear(self, run: _Run) -> None:
        """The workspace of a command that came to no end goes, if there is nothing in it."""
        try:
            if not await self._holds_work(run):
                await self.workspaces.abandon(run.caller, run.named)
        except ContextbaseError as error:
            extra = {"workspace_id": str(run.workspace.id), "error": error.message}
            _log.warning("the workspace of a command that was given up is kept", extra=extra)

    def _clear_later(self, run: _Run) -> None:
        task = asyncio.create_task(self._clear(run))
        self._clearing.add(task)
        task.add_done_callback(self._clearing.discard)


def _name_of_new(caller: Caller) -> str | None:
    if Action.ADMIN not in caller.grant.actions or caller.grant.path_prefix is not None:
        return None
    return f"agent:run-{token_hex(4)}"


def _with_place(error: ContextbaseError, workspace: WorkspaceRecord) -> ContextbaseError:
    """The caller may not know whose workspace the command ran in."""
    agent = str(workspace.principal)
    place = f"The command has ended; what it changed is in the workspace of {agent}."
    return error.followed_by(place, agent=agent, workspace_id=str(workspace.id))


def _spec(run: _Run) -> SandboxSpec:
    return SandboxSpec(
        id=SandboxId(int=new_uuid().int),
        folder=run.workspace.path,
        limits=run.request.limits,
        network=run.request.network,
        environment=run.request.environment,
        labels={"workspace": str(run.workspace.id), "project": str(run.workspace.project_id)},
    )
