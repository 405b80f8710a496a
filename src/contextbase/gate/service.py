"""The gate as its callers know it: upload, commit, and the contents a writer may name."""

import hashlib
import json
from collections.abc import AsyncIterable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import NotFound
from contextbase.gate.answers import without_contents
from contextbase.gate.batch import Submitted
from contextbase.gate.content_types import BYTES_LOOKED_AT
from contextbase.gate.large_contents import LargeContents
from contextbase.gate.leader import GroupCommit
from contextbase.gate.model import CommitAnswer, CommitRequest, Content, RequestedChange
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.policy_cache import PolicyCache
from contextbase.gate.repository import GateRepository, purged_at
from contextbase.gate.trusted import TrustedTerms
from contextbase.identity.levels import Level, PathAuthority
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath, new_uuid
from contextbase.lru_cache import LruCache
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.storage.head import HeadRepository

__all__ = ["Gate", "OpenedProject"]

_SQL: Final = load_queries("contextbase.gate")
_NO_TERMS: Final = TrustedTerms()
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
        large: LargeContents,
        policies: PolicyCache,
        group_commit: GroupCommit,
    ) -> None:
        self._database = database
        self._repository = repository
        self._head = head
        self._policies = policies
        self._catalog = catalog
        self._large = large
        self._group_commit = group_commit
        # By project: its head, epoch and policy version.
        self._last_opened: LruCache[ProjectId, tuple[Seq, UUID, int]] = LruCache(_MOST_REMEMBERED)

    async def commit(self, caller: Caller, request: CommitRequest) -> CommitAnswer:
        """Settle the request's changes; when this returns, every one but the refused is durably in the project.

        A caller who may not read is told what became of each change, and nothing of what it met.
        Raises `NotFound`, `Forbidden` (the grant), `InvalidInput` (a base from the future, a content that is not the
        caller's to name), `Conflict` (an idempotency key used for something else) or `Unavailable`.
        """
        return await self.commit_trusted(caller, request, _NO_TERMS)

    async def commit_trusted(self, caller: Caller, request: CommitRequest, terms: TrustedTerms) -> CommitAnswer:
        """As `commit`, on terms that only our own code may set."""
        caller.require(Action.WRITE, request.project_id)
        if request.tells_what_is_there:
            caller.require(Action.READ, request.project_id)
        checked = await self._checked(caller, request)
        stored = await self._stored_ahead(caller, checked)
        answer = await self._group_commit.commit(
            Submitted(
                request=checked,
                terms=terms,
                caller=caller,
                request_hash=_hash_of(request, terms),
                commit_id=new_uuid(),
                stored=stored,
            )
        )
        self._last_opened.forget(request.project_id)  # the head has moved on
        return answer if caller.may_read else without_contents(request.changes, answer)

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
            for path in (await self.purged(connection, caller, project_id, [blob.hash])).values():
                raise purged_at(path)
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
        principals = rules.policy.in_groups(callers)
        groups = await self._repository.groups(connection, principals)
        return [
            OpenedProject(
                seq=Seq(row["head"]),
                epoch=row["epoch"],
                policy=rules.policy,
                authority=rules.authority(caller, groups),
            )
            for caller in callers
        ]

    def last_opened(self, caller: Caller, project_id: ProjectId) -> OpenedProject | None:
        """As `opened`, from memory: true only of a project that has the same head, epoch and policy version still."""
        seq, epoch, version = self._last_opened.get(project_id) or (Seq(0), None, 0)
        rules = self._policies.known(project_id, version)
        if epoch is None or rules is None or rules.policy.uses_groups:  # who is in a group is not remembered
            return None
        return OpenedProject(seq=seq, epoch=epoch, policy=rules.policy, authority=rules.authority(caller, {}))

    def _remember(self, project_id: ProjectId, seq: Seq, epoch: UUID, policy_version: int) -> None:
        self._last_opened.put(project_id, (seq, epoch, policy_version))

    async def authority(self, connection: Connection, caller: Caller, project_id: ProjectId) -> PathAuthority:
        """What the caller may see and do in the project."""
        return (await self.opened(connection, caller, project_id)).authority

    async def purged(
        self, connection: Connection, caller: Caller, project_id: ProjectId, names: Collection[ContentHash]
    ) -> dict[ContentHash, TreePath]:
        """Those of these contents that the project does not take again from the caller, and where each stood."""
        opened = await self.opened(connection, caller, project_id)
        if not opened.policy.has_purged or not caller.may_read:
            return {}
        return await self._repository.purged_for(connection, project_id, names, opened.authority)

    async def _stored_ahead(self, caller: Caller, request: CommitRequest) -> set[ContentHash]:
        """Store the large contents that the request brings along, where the caller may write."""
        brought = [
            (place, change.content.hash, change.content.inline)
            for change in request.changes
            if change.content is not None and len(change.content.inline or b"") >= self._large.limit
            for place in (change.target or change.path,)
        ]
        if not brought:
            return set()
        async with self._database.connection() as connection:
            authority = await self.authority(connection, caller, request.project_id)
        contents = {
            name: content
            for place, name, content in brought
            if content is not None and authority.level(place) >= Level.READ_ADD
        }
        await self._large.store_ahead(caller.principal.id, contents)
        return {*contents}

    async def _checked(self, caller: Caller, request: CommitRequest) -> CommitRequest:
        """The request with the size of every content it names, after checking that the caller may name it."""
        named = {change.content.hash for change in request.changes if change.content and change.content.inline is None}
        if not named:
            return request
        async with self._database.connection() as connection:
            sizes, starts = await self._own_contents(connection, caller, request.project_id, named)
        if named - sizes.keys():
            missing = min(map(str, named - sizes.keys()))
            raise NotFound(f"There is no content {missing} that you uploaded or may read; upload it first.")
        untyped = {change.content.hash for change in request.changes if change.content and not change.mime}
        starts |= await self._large.starts_of({name: sizes[name] for name in (untyped & named) - starts.keys()})
        return replace(request, changes=tuple(_known(change, sizes, starts) for change in request.changes))

    async def _own_contents(
        self, connection: Connection, caller: Caller, project_id: ProjectId, named: set[ContentHash]
    ) -> tuple[dict[ContentHash, int], dict[ContentHash, bytes]]:
        """The sizes of those that the caller may name, and the first bytes of some."""
        rows = await connection.fetch(_SQL.own_uploads, project_id, caller.principal.id, list(named), BYTES_LOOKED_AT)
        sizes = {ContentHash(row["content_hash"]): row["size"] for row in rows}
        starts = {ContentHash(row["content_hash"]): row["start"] for row in rows if row["start"] is not None}
        rest = named - sizes.keys()
        if rest and caller.may_read:
            authority = await self.authority(connection, caller, project_id)
            for row in await connection.fetch(_SQL.paths_of_contents, project_id, list(rest)):
                if authority.shows(TreePath.stored(row["path"]), TreePath.stored(row["path_now"])):
                    if row["purged"]:
                        raise purged_at(TreePath.stored(row["path"]))
                    sizes[ContentHash(row["content_hash"])] = row["size"]
            for path in (await self._repository.purged_for(connection, project_id, rest, authority)).values():
                raise purged_at(path)
        return sizes, starts


def _known(change: RequestedChange, sizes: dict[ContentHash, int], starts: dict[ContentHash, bytes]) -> RequestedChange:
    content = change.content
    if content is None or content.inline is not None:
        return change
    known = Content(hash=content.hash, size=sizes[content.hash], start=starts.get(content.hash))
    return replace(change, content=known)


def _hash_of(request: CommitRequest, terms: TrustedTerms) -> bytes:
    """What two sendings of one request have in common; a base given as "the head" was resolved by the writer."""
    fields: list[object] = [
        str(request.project_id),
        request.message,
        request.atomic,
        request.run,
        [[str(closing.review_id), closing.state] for closing in terms.closes],
        *_expected(request),
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
                *(() if change.base_version is None else (change.base_version,)),
            ]
            for change in request.changes
        ],
    ]
    fields += [[folder.path, folder.target, folder.base] for folder in terms.moved]
    return hashlib.sha256(json.dumps(fields).encode()).digest()


def _expected(request: CommitRequest) -> list[object]:
    """Nothing for a request that expects nothing: the hashes of those that were answered before must stay."""
    if request.expects is None:
        return []
    return [[sorted(map(str, request.expects.contents)), request.expects.is_any, request.expects.is_none]]
