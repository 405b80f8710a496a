"""The gate as its callers know it: upload, commit, and the contents a writer may name."""

import hashlib
import json
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.audit.model import OperatorType
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import ContentPurged, NotFound
from contextbase.gate.batch import Submitted
from contextbase.gate.cache import PolicyBook
from contextbase.gate.leader import GroupCommit
from contextbase.gate.model import Change, CommitAnswer, CommitRequest, Content
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.repository import GateRepository
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath, new_uuid
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.storage.head import HeadRepository

__all__ = ["Gate", "OpenedProject"]

_SQL: Final = load_queries("contextbase.gate")
_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedProject:
    """A project's head for one caller."""

    seq: Seq
    epoch: UUID
    policy: ProjectPolicy
    authority: PathAuthority


class Gate:
    def __init__(
        self,
        *,
        database: Database,
        repository: GateRepository,
        head: HeadRepository,
        catalog: BlobCatalog,
        policies: PolicyBook,
        group_commit: GroupCommit,
    ) -> None:
        self._database = database
        self._repository = repository
        self._head = head
        self._policies = policies
        self._catalog = catalog
        self._group_commit = group_commit
        self._last_opened: dict[ProjectId, tuple[Seq, UUID, int]] = {}  # head, epoch and policy version

    async def commit(self, caller: Caller, request: CommitRequest, *, operator_type: OperatorType) -> CommitAnswer:
        """Settle the request's changes; when this returns, every one but the refused is durably in the project.

        Raises `NotFound`, `Forbidden` (the token), `InvalidInput` (a base from the future, a content that is not the
        caller's to name), `Conflict` (an idempotency key used for something else) or `Unavailable`.
        """
        caller.require(Action.WRITE, request.project_id)
        return await self._group_commit.commit(
            Submitted(
                request=await self._checked(caller, request),
                caller=caller,
                operator_type=operator_type,
                request_hash=_hash_of(request),
                commit_id=new_uuid(),
            )
        )

    async def upload(
        self,
        caller: Caller,
        project_id: ProjectId,
        content: AsyncIterable[bytes],
        *,
        expected: ContentHash | None = None,
    ) -> StoredBlob:
        """Store content of any size, to be named by its hash in a commit. It is kept for the caller meanwhile."""
        caller.require(Action.WRITE, project_id)
        async with self._database.connection() as connection:
            await self._head.read(connection, project_id)
        blob = await self._catalog.put(content, expected=expected)
        async with self._database.connection() as connection:
            await connection.execute(_SQL.record_upload, project_id, caller.principal.id, blob.hash, blob.size)
        return blob

    async def opened(self, connection: Connection, caller: Caller, project_id: ProjectId) -> OpenedProject:
        """The head as it is, and what the caller may see and do there; raises `NotFound`."""
        row = await connection.fetchrow(_SQL.opened_project, project_id)
        [opened] = await self.opened_by(connection, project_id, row, [caller])
        return opened

    async def opened_by(
        self, connection: Connection, project_id: ProjectId, row: asyncpg.Record | None, callers: Sequence[Caller]
    ) -> list[OpenedProject]:
        """As `opened`, for many, from a row that was read together with something else (None: there is no project)."""
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        rules = await self._policies.page(connection, project_id, row["policy_version"])
        self._remember(project_id, Seq(row["head"]), row["epoch"], row["policy_version"])
        principals = {caller.principal.id for caller in callers} if rules.policy.uses_groups else ()
        groups = await self._repository.groups(connection, principals)
        return [
            OpenedProject(
                seq=Seq(row["head"]),
                epoch=row["epoch"],
                policy=rules.policy,
                authority=rules.authority(caller, groups.get(caller.principal.id, frozenset())),
            )
            for caller in callers
        ]

    def last_opened(self, caller: Caller, project_id: ProjectId) -> OpenedProject | None:
        """As `opened`, from memory: true only of a project that has the same head, epoch and policy version still."""
        seq, epoch, version = self._last_opened.get(project_id, (Seq(0), None, 0))
        rules = self._policies.known(project_id, version)
        if epoch is None or rules is None or rules.policy.uses_groups:  # who is in a group is not remembered
            return None
        return OpenedProject(seq=seq, epoch=epoch, policy=rules.policy, authority=rules.authority(caller, frozenset()))

    def _remember(self, project_id: ProjectId, seq: Seq, epoch: UUID, policy_version: int) -> None:
        if len(self._last_opened) >= _MOST_REMEMBERED:
            self._last_opened.clear()
        self._last_opened[project_id] = (seq, epoch, policy_version)

    async def authority(self, connection: Connection, caller: Caller, project_id: ProjectId) -> PathAuthority:
        """What the caller may see and do in the project."""
        return (await self.opened(connection, caller, project_id)).authority

    async def _checked(self, caller: Caller, request: CommitRequest) -> CommitRequest:
        """The request with the size of every content it names, after checking that the caller may name it."""
        named = {change.content.hash for change in request.changes if change.content and change.content.inline is None}
        if not named:
            return request
        async with self._database.connection() as connection:
            sizes = await self._sizes_of_own(connection, caller, request.project_id, named)
        if named - sizes.keys():
            missing = min(map(str, named - sizes.keys()))
            raise NotFound(f"There is no content {missing} that you uploaded or may read; upload it first.")
        return replace(request, changes=tuple(_with_size(change, sizes) for change in request.changes))

    async def _sizes_of_own(
        self, connection: Connection, caller: Caller, project_id: ProjectId, named: set[ContentHash]
    ) -> dict[ContentHash, int]:
        rows = await connection.fetch(_SQL.own_uploads, project_id, caller.principal.id, list(named))
        sizes = {ContentHash(row["content_hash"]): row["size"] for row in rows}
        rest = named - sizes.keys()
        if rest:
            authority = await self.authority(connection, caller, project_id)
            for row in await connection.fetch(_SQL.paths_of_contents, project_id, list(rest)):
                if authority.sees(TreePath.stored(row["path"])) and authority.sees(TreePath.stored(row["path_now"])):
                    if row["purged"]:
                        raise ContentPurged(f"What stood at {row['path']} was purged from all history.")
                    sizes[ContentHash(row["content_hash"])] = row["size"]
        return sizes


def _with_size(change: Change, sizes: dict[ContentHash, int]) -> Change:
    content = change.content
    if content is None or content.inline is not None:
        return change
    return replace(change, content=Content(hash=content.hash, size=sizes[content.hash]))


def _hash_of(request: CommitRequest) -> bytes:
    """What two sendings of one request have in common; a base given as "the head" was resolved by the writer."""
    fields = [
        str(request.project_id),
        request.message,
        request.atomic,
        request.run,
        [[str(closing.review_id), closing.state] for closing in request.closes],
        [
            [
                change.action,
                change.path,
                change.base,
                str(change.content.hash) if change.content else None,
                change.kind,
                change.executable,
                change.mime,
                change.target,
            ]
            for change in request.changes
        ],
    ]
    return hashlib.sha256(json.dumps(fields).encode()).digest()
