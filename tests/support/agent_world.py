"""Sessions on a real machine: workspaces, sandboxes, executors, and the scripted model behind the gateway."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.api import url_of
from tests.support.gate_world import write
from tests.support.require import require_root
from tests.support.workspaces import unmount_all

from contextbase.bootstrap import EVERY_ROLE, ProcessRole, Services, open_services
from contextbase.bootstrap.workers import WorkerServices
from contextbase.config import Settings
from contextbase.conversation.questions import HumanQuestion
from contextbase.db.database import DatabaseAddress
from contextbase.errors import NotFound
from contextbase.gate.model import CommitRequest
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, ProjectId, TreePath
from contextbase.sandbox.model import WORKSPACE, StorageProof
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.landing import RunLanding
from contextbase.sessions.model import AgentRun, AgentSession, QueueState, RunId, SessionRequest
from contextbase.sessions.states import ENDED, RunState
from contextbase.sessions.worker_host import WorkerHost
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import Position, Scope, StreamEvent

__all__ = ["AgentWorld", "open_agent_world", "remove_sandboxes"]

_PATIENCE = 600.0


@dataclass
class AgentWorld:
    services: Services
    owner: Caller
    project_id: ProjectId

    async def session(self, **wishes: Any) -> AgentSession:
        request = SessionRequest(project_id=self.project_id, **{"provider": "scripted", **wishes})
        return await self.services.core.sessions.service.create(self.owner, request)

    async def send(self, session: AgentSession, prompt: str) -> AgentRun:
        return await self.services.core.sessions.service.send(self.owner, session.id, prompt)

    async def ended(self, run: AgentRun) -> AgentRun:
        """The run when it is over."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                now = await self.services.core.sessions.runs.get(run.id)
                if now.state in ENDED:
                    return now
                await asyncio.sleep(0.05)

    async def in_state(self, run: AgentRun, *states: RunState) -> AgentRun:
        """The run when it is in one of these states."""
        async with asyncio.timeout(_PATIENCE):
            while (now := await self.services.core.sessions.runs.get(run.id)).state not in states:
                assert now.state not in ENDED, (now.state, now.reason, now.message)
                await asyncio.sleep(0.05)
            return now

    async def parked(self, run: AgentRun) -> None:
        """Until the run waits for a person without a machine."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                found = await self.services.core.sessions.service.run(self.owner, run.id)
                if found.place is not None and found.place.state is QueueState.PARKED:
                    assert found.run.state is RunState.WAITING_HUMAN
                    return
                assert found.run.state not in ENDED, (found.run.state, found.run.reason, found.run.message)
                await asyncio.sleep(0.05)

    async def asked(self, run: AgentRun, *, number: int = 0) -> HumanQuestion:
        """The run's question that waits for an answer, once there is one; the first `number` are not meant."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                found = await self.services.core.sessions.questions.of_run(self.owner, run.id)
                if len(found) > number:
                    return found[number].question
                now = await self.services.core.sessions.runs.get(run.id)
                assert now.state not in ENDED, (now.state, now.reason, now.message)
                await asyncio.sleep(0.05)

    async def answer(self, question: HumanQuestion, reply: QuestionReply) -> HumanQuestion:
        questions, run_id = self.services.core.sessions.questions, RunId(question.run_id)
        return (await questions.reply(self.owner, run_id, question.question_id, reply)).question

    async def again(self, session: AgentSession) -> AgentSession:
        """The session as it is now."""
        return (await self.services.core.sessions.service.get(self.owner, session.id)).session

    async def done(self, session: AgentSession, prompt: str) -> AgentRun:
        return await self.ended(await self.send(session, prompt))

    async def told(self, session: AgentSession, kind: str, times: int = 1) -> None:
        """Until the session has events of a kind."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                if sum(event.kind == kind for event in await self.events(session)) >= times:
                    return
                await asyncio.sleep(0.05)

    @property
    def workers(self) -> WorkerServices:
        assert self.services.machine is not None
        return self.services.machine.workers

    @property
    def host(self) -> WorkerHost:
        return self.workers.host

    @property
    def landing(self) -> RunLanding:
        return RunLanding(workspaces=self.services.agents.workspaces)

    def homes(self) -> list[Path]:
        return list(self.host.homes.iterdir())

    async def folder(self, session: AgentSession) -> Path:
        record = await self.services.agents.workspaces.path(session.caller(), session.workspace)
        return record.path

    async def events(self, session: AgentSession) -> list[StreamEvent]:
        readable, position, found = ReadableScope(scope=Scope.session(session.id)), Position(), []
        while True:
            page = await self.services.core.streams.read(readable, position, limit=500)
            found += page.events
            position = page.position
            if not page.more:
                return found

    async def forget_machine(self, run_id: RunId) -> None:
        """As if nobody had heard for long of the machine that worked on a run."""
        machine = (await self.services.core.sessions.runs.get(run_id)).machine
        async with self.services.core.database.connection() as connection:
            past = "clock_timestamp() - interval '1 hour'"
            await connection.execute(
                f"UPDATE machines SET seen_at = {past}, expires_at = {past} WHERE name = $1",  # noqa: S608 - a constant
                machine,
            )
            await connection.execute(f"UPDATE run_queue SET lease_until = {past} WHERE claimed_by = $1", machine)  # noqa: S608
        await self.services.core.sessions.queue.expire()
        await self.services.core.sessions.queue.expire()

    async def put(self, files: Mapping[str, bytes]) -> None:
        """The owner's own commit, past every session."""
        gate = self.services.core.gate
        async with self.services.core.database.connection() as connection:
            base = (await gate.opened(connection, self.owner, self.project_id)).seq
        changes = tuple(write(path, body, base) for path, body in files.items())
        await gate.commit(self.owner, CommitRequest(project_id=self.project_id, changes=changes))

    async def read(self, path: str) -> bytes | None:
        """What the project's head has there."""
        place = self.services.agents.files.project(self.owner, self.project_id)
        try:
            async with place.opened(TreePath(path)) as file:
                return b"".join([piece async for piece in file.content.stream(0, file.content.size)])
        except NotFound:
            return None


async def remove_sandboxes(services: Services) -> None:
    """Executors outlive the process that started them: a test ends its own."""
    driver = await services.agents.driving.driver()
    for sandbox in await driver.found():
        proof = None
        if sandbox.holds_files:
            await driver.stop(sandbox.id)
            digest = sha256()
            async for piece in driver.copy_out(sandbox.id, WORKSPACE):
                digest.update(piece)
            proof = StorageProof(archive=ContentHash(digest.digest()))
        await driver.remove(sandbox.id, proof=proof)


@asynccontextmanager
async def open_agent_world(
    address: DatabaseAddress,
    folder: Path,
    *,
    project_id: ProjectId | None = None,
    keeps_mounts: bool = False,
    roles: frozenset[ProcessRole] = EVERY_ROLE,
    **options: object,
) -> AsyncIterator[AgentWorld]:
    """`project_id`: go on in that project. `keeps_mounts`: as after the end of a process, for another world."""
    require_root()
    settings = Settings.model_validate({"data": folder, "database_url": url_of(address), **options})
    try:
        async with open_services(settings, roles=roles) as services:
            core = services.core
            secret = await core.identity.ensure_owner(None)
            if secret:
                core.data.write_owner_token(secret)
            owner = await core.identity.authenticate(secret or core.data.read_owner_token() or "")
            if project_id is None:
                project_id = (await core.projects.create(owner, f"p{uuid4().hex[:12]}")).id
            if services.machine is not None:
                await services.machine.start(None)
            chores = asyncio.create_task(services.chores.run())
            try:
                yield AgentWorld(services=services, owner=owner, project_id=project_id)
            finally:
                chores.cancel()
                await asyncio.gather(chores, return_exceptions=True)
                if services.machine is not None and not keeps_mounts:
                    await services.machine.workers.runs.close()
                    await remove_sandboxes(services)
    finally:
        if not keeps_mounts:
            unmount_all(folder)
