"""Workspaces over a real gate and a real database, with agents who work in real folders."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.api import url_of
from tests.support.gate_world import delete, mkdir, write
from tests.support.require import require_root
from tests.support.workspaces import read_tree, unmount_all

from contextbase.bootstrap import AgentServices, CoreServices, open_services
from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.gate.model import ChangeStatus, CommitAnswer, CommitRequest, RequestedChange
from contextbase.identity.levels import Level, SubjectKind
from contextbase.identity.model import Action, Caller, PrincipalKind, TokenRequest
from contextbase.identity.policies import Subject
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.workspaces.checkpoints import Committed, Wish
from contextbase.workspaces.machine import Site
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.refresh.service import Refreshed
from contextbase.workspaces.service import Completed

__all__ = ["WorkspaceWorld", "open_world"]


@dataclass
class WorkspaceWorld:
    services: CoreServices
    agents: AgentServices
    provider: str
    owner: Caller
    project_id: ProjectId
    callers: dict[str, Caller] = field(default_factory=dict)

    async def site(self) -> Site:
        return await self.agents.workspaces.node.site()

    async def new_project(self) -> None:
        """Go on in a new, empty project."""
        self.project_id = (await self.services.projects.create(self.owner, f"p{uuid4().hex[:12]}")).id

    async def agent(self, name: str) -> Caller:
        if name not in self.callers:
            request = TokenRequest(
                principal_kind=PrincipalKind.AGENT,
                principal_name=name,
                name=name,
                actions=frozenset({Action.READ, Action.WRITE}),
                life=timedelta(hours=1),
            )
            _, secret = await self.services.identity.create_token(self.owner, request)
            self.callers[name] = await self.services.identity.authenticate(secret)
        return self.callers[name]

    async def narrow_token(self, name: str, prefix: str) -> Caller:
        """The agent with a token for one folder."""
        request = TokenRequest(
            principal_kind=PrincipalKind.AGENT,
            principal_name=name,
            name="narrow",
            actions=frozenset({Action.READ, Action.WRITE}),
            life=timedelta(hours=1),
            project_id=self.project_id,
            path_prefix=TreePath(prefix),
        )
        _, secret = await self.services.identity.create_token(self.owner, request)
        return await self.services.identity.authenticate(secret)

    async def create(self, name: str, *, at: Seq | None = None, of: str | None = None) -> Path:
        """`of`: a folder of the project."""
        agent, folder = await self.agent(name), None if of is None else TreePath(of)
        created = await self.agents.workspaces.create(agent, self.project_id, at=at, folder=folder)
        return created.record.path

    async def status(self, name: str) -> set[TreePath]:
        """The paths that are not committed yet."""
        _, look = await self.agents.workspaces.status(await self.agent(name), NamedWorkspace(self.project_id))
        return {change.path for change in look.changes}

    async def commit(self, name: str, wish: Wish | None = None) -> Committed:
        agent = await self.agent(name)
        _, committed = await self.agents.workspaces.commit(agent, NamedWorkspace(self.project_id), wish=wish or Wish())
        return committed

    async def refresh(self, name: str) -> Refreshed:
        _, refreshed = await self.agents.workspaces.refresh(await self.agent(name), NamedWorkspace(self.project_id))
        return refreshed

    async def complete(self, name: str, *, discard: bool = False) -> Completed:
        agent = await self.agent(name)
        return await self.agents.workspaces.complete(
            agent, NamedWorkspace(self.project_id), wish=Wish(), discard=discard
        )

    async def write(self, *changes: RequestedChange) -> CommitAnswer:
        """The owner's own commit, past every workspace."""
        request = CommitRequest(project_id=self.project_id, changes=changes)
        answer = await self.services.gate.commit(self.owner, request)
        assert all(one.status is not ChangeStatus.REFUSED for one in answer.changes)
        return answer

    async def put(self, files: dict[str, bytes | None]) -> Seq:
        """Write (None: delete) files upon the head; returns its seq then."""
        base = await self.head()
        changes = [delete(path, base) if body is None else write(path, body, base) for path, body in files.items()]
        return (await self.write(*changes)).seq

    async def diverged(self, name: str, written_meanwhile: bytes, patched: pytest.MonkeyPatch) -> Path:
        """An agent's folder whose `list.json` somebody else changed elsewhere, so that the next commit merges it; and
        while that is under way, the agent writes the file once more."""
        await self.put({"list.json": b'{\n  "a": 1,\n  "b": 1\n}\n'})
        folder = await self.create(name)
        await self.put({"list.json": b'{\n  "a": 2,\n  "b": 1\n}\n'})
        (folder / "list.json").write_bytes(b'{\n  "a": 1,\n  "b": 2\n}\n')
        commit = self.services.gate.commit_trusted

        async def meanwhile(*args: object, **options: object) -> object:
            answer = await commit(*args, **options)  # type: ignore[arg-type]  # passed on
            (folder / "list.json").write_bytes(written_meanwhile)
            return answer

        patched.setattr(self.services.gate, "commit_trusted", meanwhile)
        return folder

    async def make_folder(self, path: str) -> None:
        await self.write(mkdir(path, await self.head()))

    async def rule(self, pattern: str, level: Level) -> None:
        """For everybody but the owner."""
        await self.services.policies.put_rule(
            self.owner,
            self.project_id,
            subject=Subject(kind=SubjectKind.EVERYONE),
            pattern=pattern,
            level=level,
        )

    async def head(self) -> Seq:
        async with self.services.database.connection() as connection:
            return (await self.services.gate.opened(connection, self.owner, self.project_id)).seq

    async def tree(self) -> dict[str, object]:
        """The head, as a workspace of the owner's shows it."""
        created = await self.agents.workspaces.create(self.owner, self.project_id)
        tree = dict(read_tree(created.record.path))
        await self.agents.workspaces.abandon(self.owner, NamedWorkspace(self.project_id))
        return tree


@asynccontextmanager
async def open_world(
    address: DatabaseAddress, folder: Path, provider: str, **options: object
) -> AsyncIterator[WorkspaceWorld]:
    if provider == "overlay":
        require_root()
    settings = Settings.model_validate(
        {"data": folder, "database_url": url_of(address), "workspace_provider": provider, **options}
    )
    try:
        async with open_services(settings) as opened:
            services = opened.core
            secret = await services.identity.ensure_owner(None)
            assert secret
            services.data.write_owner_token(secret)
            owner = await services.identity.authenticate(secret)
            project = await services.projects.create(owner, "first")
            yield WorkspaceWorld(
                services=services, agents=opened.agents, provider=provider, owner=owner, project_id=project.id
            )
    finally:
        unmount_all(folder)
