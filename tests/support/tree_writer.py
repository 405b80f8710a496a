"""Writes commits the way the gate does: blobs first, then versions, head and audit row in one transaction."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from contextbase.audit.chain import AuditKey
from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind, Token
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, SystemClock, TokenId, TreePath, new_uuid
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.head import HeadRepository
from contextbase.storage.landing import Landing
from contextbase.storage.model import Kind, NewCommit, NewVersion, Project
from contextbase.storage.projects import ProjectService

__all__ = ["TEST_AUDIT_KEY", "TreeWriter", "in_pieces", "owner_of"]

TEST_AUDIT_KEY = AuditKey(b"a key for tests, not for anything else")


async def in_pieces(content: bytes, size: int = 65536) -> AsyncIterator[bytes]:
    for offset in range(0, len(content), size):
        yield content[offset : offset + size]


async def owner_of(database: Database) -> Caller:
    """A caller who may do everything."""
    async with database.transaction() as connection:
        principal = await IdentityRepository().ensure_principal(connection, PrincipalKind.USER, "owner", is_owner=True)
    return Caller.with_token(_token(principal))


def _token(principal: Principal) -> Token:
    now = SystemClock().now()
    return Token(
        id=TokenId(new_uuid()), principal=principal, name="test", actions=frozenset(Action), project_id=None,
        path_prefix=None, created_at=now, expires_at=now,
    )  # fmt: skip


@dataclass
class TreeWriter:
    """Knows each node's last version number, so that tests can speak of paths alone."""

    database: Database
    caller: Caller
    project: Project
    audit: AuditRepository = field(default_factory=lambda: AuditRepository(TEST_AUDIT_KEY))
    head: HeadRepository = field(default_factory=HeadRepository)
    numbers: dict[NodeId, int] = field(default_factory=dict)
    node_at: dict[str, NodeId] = field(default_factory=dict)

    @classmethod
    async def start(cls, database: Database, name: str = "") -> "TreeWriter":
        caller = await owner_of(database)
        audit = AuditRepository(TEST_AUDIT_KEY)
        service = ProjectService(database=database, audit=audit, clock=SystemClock())
        project = await service.create(caller, name or f"p{new_uuid().hex}")
        return cls(database=database, caller=caller, project=project)

    def write(
        self, path: str, content_hash: ContentHash | None, *, size: int = 0, kind: Kind = Kind.FILE
    ) -> NewVersion:
        """A new version at a path; a new node when nothing is there."""
        node_id = self.node_at.get(path) or NodeId(new_uuid())
        self.node_at[path] = node_id
        return self._next(node_id, path, kind, content_hash, size)

    def delete(self, path: str) -> NewVersion:
        return self._next(self.node_at.pop(path), path, Kind.DELETED, None, 0)

    def rename(self, path: str, target: str, content_hash: ContentHash | None, *, size: int, kind: Kind) -> NewVersion:
        node_id = self.node_at.pop(path)
        self.node_at[target] = node_id
        return self._next(node_id, target, kind, content_hash, size)

    def _next(self, node_id: NodeId, path: str, kind: Kind, content_hash: ContentHash | None, size: int) -> NewVersion:
        number = self.numbers.get(node_id, 0) + 1
        self.numbers[node_id] = number
        base = number - 1 or None
        return NewVersion(
            node_id=node_id, number=number, path=TreePath(path), kind=kind, content_hash=content_hash, size=size,
            base_number=base,
        )  # fmt: skip

    async def commit(self, *commits: Sequence[NewVersion]) -> Seq:
        """Each argument is one commit; all are added in one transaction."""
        who, way_in = self.caller.principal.id, self.caller.way_in
        new = [
            NewCommit(id=new_uuid(), principal_id=who, way_in=way_in, message="", versions=tuple(versions))
            for versions in commits
        ]
        return await self.append(new)

    async def append(self, commits: Sequence[NewCommit]) -> Seq:
        project_id: ProjectId = self.project.id
        async with self.database.transaction() as connection:
            locked = await self.head.lock(connection, project_id)
            entries = [
                AuditEntry(
                    at=SystemClock().now(), by=self.caller.actor, action="commit", summary="Changed files.",
                    seq=Seq(locked.seq + offset),
                )
                for offset in range(1, len(commits) + 1)
            ]  # fmt: skip
            audit = await self.audit.extension(connection, project_id, entries)
            landing = Landing(head=locked, audit=audit, commits=commits)
            assert await self.head.land(connection, landing)
        return landing.last

    async def put(self, catalog: BlobCatalog, content: bytes) -> tuple[ContentHash, int]:
        blob = await catalog.put(in_pieces(content))
        return blob.hash, blob.size
