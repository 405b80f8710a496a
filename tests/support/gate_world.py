"""A gate over a real database, and short ways to use it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from prometheus_client import CollectorRegistry
from tests.support.tree_writer import TEST_AUDIT_KEY, owner_of

from contextbase.audit.repository import AuditRepository
from contextbase.compute.ports import Compute
from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Database
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.drafter import Drafter
from contextbase.gate.large_contents import LargeContents
from contextbase.gate.leader import GroupCommit
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.metrics import GateMetrics
from contextbase.gate.model import ChangeAction, ChangeAnswer, CommitAnswer, CommitRequest, Content, RequestedChange
from contextbase.gate.policy_cache import PolicyCache
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.gate.turns import Turns
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind, Token
from contextbase.identity.policies import PolicyService
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ContentHash, ProjectId, Seq, SystemClock, TokenId, TreePath, new_uuid
from contextbase.leases.repository import LeaseRepository
from contextbase.reads.service import Reads
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.fsck import Fsck
from contextbase.storage.head import HeadRepository
from contextbase.storage.model import Project
from contextbase.storage.projects import ProjectService
from contextbase.storage.tree import TreeRepository

__all__ = ["GateWorld", "delete", "mkdir", "rename", "write"]


def write(path: str, content: bytes, base: int, **options: object) -> RequestedChange:
    name = ContentHash.of(content)
    made = Content(hash=name, size=len(content), inline=content)
    return RequestedChange(action=ChangeAction.WRITE, path=TreePath(path), base=Seq(base), content=made, **options)  # type: ignore[arg-type]  # forwarded


def delete(path: str, base: int) -> RequestedChange:
    return RequestedChange(action=ChangeAction.DELETE, path=TreePath(path), base=Seq(base))


def rename(path: str, target: str, base: int) -> RequestedChange:
    return RequestedChange(action=ChangeAction.RENAME, path=TreePath(path), target=TreePath(target), base=Seq(base))


def mkdir(path: str, base: int) -> RequestedChange:
    return RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=TreePath(path), base=Seq(base))


@dataclass
class GateWorld:
    database: Database
    gate: Gate
    reads: Reads
    catalog: BlobCatalog
    owner: Caller
    project: Project
    policies: PolicyService
    metrics: CollectorRegistry
    blobs: BlobStore  # where large ones are
    tree: TreeRepository = field(default_factory=TreeRepository)

    @classmethod
    async def start(
        cls,
        database: Database,
        folder: Path,
        *,
        limit: int = 262_144,
        project_name: str | None = None,
        hint: Callable[[ProjectId], None] = lambda _: None,
        blobs: BlobStore | None = None,
        compute: Compute | None = None,
        **patience: float,
    ) -> Self:
        """A gate of this process, on a new project or on one that another process made."""
        audit, repository, head = AuditRepository(TEST_AUDIT_KEY), GateRepository(), HeadRepository()
        blobs = blobs or LocalBlobStore(folder / "blobs")
        catalog = BlobCatalog(
            database=database,
            small=InlineBlobStore(database),
            large=blobs,
            limit=limit,
            spool=SpoolFolder(folder / "spool"),
        )
        contents = ContentCache()
        book = PolicyCache(repository, contents)
        large = LargeContents(catalog, **patience)
        drafter = Drafter(
            repository=repository, policies=book, large=large, merges=LongMerges(compute or ThreadCompute()),
            contents=contents, leases=LeaseRepository(), clock=SystemClock(),
        )  # fmt: skip
        metrics = CollectorRegistry()
        group = GroupCommit(
            database=database.writers, repository=repository, head=head, audit=audit, catalog=catalog,
            drafter=drafter, metrics=GateMetrics(metrics), turns=Turns(database), hint=hint,
        )  # fmt: skip
        gate = Gate(
            database=database, repository=repository, head=head, catalog=catalog, large=large, policies=book,
            group_commit=group,
        )  # fmt: skip
        reads = Reads(
            database=database, gate=gate, repository=repository, tree=TreeRepository(), catalog=catalog,
            contents=contents,
        )  # fmt: skip
        owner = await owner_of(database)
        projects = ProjectService(database=database, audit=audit, clock=SystemClock())
        if project_name is None:
            project = await projects.create(owner, f"p{new_uuid().hex}")
        else:
            project = await projects.find(owner, project_name)
        policies = PolicyService(
            database=database,
            repository=PolicyRepository(),
            accounts=IdentityRepository(),
            audit=audit,
            clock=SystemClock(),
        )
        return cls(
            database=database, gate=gate, reads=reads, catalog=catalog, owner=owner, project=project, policies=policies,
            metrics=metrics, blobs=blobs,
        )  # fmt: skip

    async def agent(self, name: str) -> Caller:
        async with self.database.transaction() as connection:
            principal = await IdentityRepository().ensure_principal(connection, PrincipalKind.AGENT, name)
        return Caller.with_token(token_of(principal))

    async def commit(self, *changes: RequestedChange, who: Caller | None = None, **options: object) -> CommitAnswer:
        request = CommitRequest(project_id=self.project.id, changes=changes, **options)  # type: ignore[arg-type]  # forwarded
        return await self.gate.commit(who or self.owner, request)

    async def upload(self, content: bytes, who: Caller | None = None) -> None:
        """Store content that a commit will name."""

        async def once() -> AsyncIterator[bytes]:
            yield content

        await self.gate.upload(who or self.owner, self.project.id, once())

    async def look(self, path: str, who: Caller | None = None) -> tuple[bytes, Seq]:
        """A file's content at the head, and the head."""
        found = await self.reads.at_paths(who or self.owner, self.project.id, [TreePath(path)], seq=None, contents=True)
        [entry] = found.entries
        assert entry.content is not None
        return entry.content, found.seq

    async def one(self, change: RequestedChange, who: Caller | None = None) -> ChangeAnswer:
        return (await self.commit(change, who=who)).changes[0]

    async def rule(self, pattern: str, level: str, who: Caller | None = None) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(
                "INSERT INTO path_rules (id, project_id, principal_id, pattern, level) VALUES ($1, $2, $3, $4, $5)",
                new_uuid(), self.project.id, who.principal.id if who else None, pattern, level,
            )  # fmt: skip
            await connection.execute(
                "UPDATE projects SET policy_version = policy_version + 1 WHERE id = $1", self.project.id
            )

    async def merge_rule(self, pattern: str, strategy: str) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(
                """INSERT INTO merge_rules (project_id, position, pattern, strategy)
                   SELECT $1, 1 + count(*), $2, $3 FROM merge_rules WHERE project_id = $1""",
                self.project.id, pattern, strategy,
            )  # fmt: skip
            await connection.execute(
                "UPDATE projects SET policy_version = policy_version + 1 WHERE id = $1", self.project.id
            )

    async def files(self, seq: int | None = None) -> dict[str, bytes | None]:
        """The tree at the head, or at a seq: contents by path, None for directories."""
        async with self.database.connection() as connection:
            at = seq if seq is not None else 2**60
            page = await self.tree.page(connection, self.project.id, Seq(at), limit=10_000)
        return {
            str(version.path): None if version.content_hash is None else await self.catalog.read(version.content_hash)
            for version in page
        }

    async def problems(self) -> list[object]:
        fsck = Fsck(database=self.database, store=self.catalog.store, audit=AuditRepository(TEST_AUDIT_KEY))
        return [step.problem async for step in fsck.run() if step.problem]


def token_of(principal: Principal) -> Token:
    now = SystemClock().now()
    return Token(
        id=TokenId(new_uuid()), principal=principal, name="test", actions=frozenset(Action), project_id=None,
        path_prefix=None, created_at=now, expires_at=now,
    )  # fmt: skip
