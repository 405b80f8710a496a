"""Group commit: concurrent requests to a project are folded into one transaction, by one leader per process.

The leader takes what waits, locks the head, decides in memory what the batch does to it, writes that in a handful of
statements and answers when the COMMIT is durable. Other processes on the same database do the same: the row lock puts
them in line. While they do, the leader plans before it locks, so that the lock is short; what it planned holds if the
head and the policy did not move meanwhile, else it plans again under the lock.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, ContextbaseError, DatabaseUnavailable, InvalidInput, TooBusy
from contextbase.gate.answers import answer_from_json, answer_to_json
from contextbase.gate.batch import BatchPlan, ContentNeeded, Contents, Submitted
from contextbase.gate.cache import ContentCache, PolicyBook, PolicyPage
from contextbase.gate.folders import expand_folders
from contextbase.gate.line import Line, Waiting
from contextbase.gate.model import ChangeAction, CommitAnswer
from contextbase.gate.plan import Planner
from contextbase.gate.repository import GateRepository, LoadedBatch
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import Clock, ContentHash, ProjectId, Seq, TokenId, TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.head import HeadRepository, LockedHead
from contextbase.storage.tree import TreeRepository

__all__ = ["GroupCommit"]

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 5_000
_MOST_ATTEMPTS: Final = 1000
_ASK_SECONDS: Final = 30.0


class GroupCommit:
    def __init__(
        self,
        *,
        database: Database,
        repository: GateRepository,
        head: HeadRepository,
        audit: AuditRepository,
        catalog: BlobCatalog,
        policies: PolicyBook,
        contents: ContentCache,
        clock: Clock,
        hint: Callable[[ProjectId], None] = lambda _: None,  # told of each batch: readers may want to look
    ) -> None:
        self._database = database
        self._repository = repository
        self._head = head
        self._audit = audit
        self._catalog = catalog
        self._policies = policies
        self._contents = contents
        self._clock = clock
        self._hint = hint
        self._tree = TreeRepository()
        self._lines: dict[ProjectId, Line] = {}

    async def commit(self, submitted: Submitted) -> CommitAnswer:
        """Wait in line and return the answer once it is durable. Cancelling the caller does not undo the request."""
        project_id = submitted.request.project_id
        line = self._lines.setdefault(project_id, Line())
        if len(line.waiting) >= MOST_WAITING:
            raise TooBusy("Too many commits wait for this project; try again in a moment.")
        size = sum(len(change.content.inline or b"") for change in submitted.request.changes if change.content)
        entry = Waiting(submitted=submitted, answer=asyncio.get_running_loop().create_future(), size=size)
        line.waiting.append(entry)
        if line.leader is None:
            line.leader = asyncio.create_task(self._lead(project_id, line), name=f"gate-{project_id}")
        return await asyncio.shield(entry.answer)

    async def close(self) -> None:
        """Finish what was taken on."""
        leaders = [line.leader for line in self._lines.values() if line.leader is not None]
        await asyncio.gather(*leaders, return_exceptions=True)

    async def _lead(self, project_id: ProjectId, line: Line) -> None:
        try:
            while line.waiting:
                batch = line.take()
                await self._serve(project_id, batch)
        finally:
            line.leader = None

    async def _serve(self, project_id: ProjectId, batch: list[Waiting]) -> None:
        try:
            answers = await self._run(project_id, [entry.submitted for entry in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is, each request gets an answer of its own
            await self._one_by_one(project_id, batch, error)
            return
        for entry, answer in zip(batch, answers, strict=True):
            entry.resolve(answer)

    async def _one_by_one(self, project_id: ProjectId, batch: list[Waiting], error: Exception) -> None:
        """One bad request must not fail its neighbours: replay singly."""
        if len(batch) == 1:
            batch[0].resolve(error)
            return
        _log.warning("a batch of %d failed (%s); replaying singly", len(batch), type(error).__name__)
        for entry in batch:
            await self._serve(project_id, [entry])

    async def _run(self, project_id: ProjectId, batch: list[Submitted]) -> "list[CommitAnswer | ContextbaseError]":
        contents = _contents_of(batch)
        for _ in range(_MOST_ATTEMPTS):
            try:
                return await self._attempt(project_id, batch, contents)
            except ContentNeeded as needed:
                contents.loaded[needed.content_hash] = await self._catalog.read(needed.content_hash)
            except _StoreFirst as first:
                for name in first.names:
                    await self._catalog.put(_once(contents.loaded[name]), expected=name)
                    contents.put.add(name)
        raise Conflict("The commit could not be settled; try again.")

    async def _attempt(
        self, project_id: ProjectId, batch: list[Submitted], contents: Contents
    ) -> "list[CommitAnswer | ContextbaseError]":
        line = self._lines[project_id]
        head, planned = await self._plan_ahead(project_id, batch, contents) if line.contended else (None, None)
        try:
            async with self._database.transaction() as connection:
                locked = await self._head.lock(connection, project_id)
                line.contended = line.left not in (None, locked.seq)
                if planned is None or locked != head or await self._repeated(connection, project_id, planned.fresh):
                    planned = await self._plan(connection, project_id, locked, batch, contents)
                await self._write(connection, project_id, locked, planned, contents)
        except DatabaseUnavailable:
            if planned is None or not await self._happened(project_id, planned.plan):
                raise
        else:
            line.left = Seq(locked.seq + len(planned.plan.commits))
        for name in planned.plan.stored:
            self._contents.keep(name, contents.loaded[name])
        if planned.plan.commits:
            self._hint(project_id)
        return planned.answers(batch)

    async def _plan_ahead(
        self, project_id: ProjectId, batch: list[Submitted], contents: Contents
    ) -> "tuple[LockedHead, _Planned]":
        # One snapshot: a head read before another process's commit and entries read after it would not fit together.
        async with self._database.transaction(isolation="repeatable_read", readonly=True) as connection:
            head = await self._head.read(connection, project_id)
            return head, await self._plan(connection, project_id, head, batch, contents)

    async def _plan(
        self,
        connection: Connection,
        project_id: ProjectId,
        head: LockedHead,
        batch: list[Submitted],
        contents: Contents,
    ) -> "_Planned":
        """Decide what the batch does to this head. Requests that happened before get the answer they had."""
        answered = await self._answered(connection, project_id, batch)
        answered |= {
            submitted.commit_id: _from_the_future(submitted, head.seq)
            for submitted in batch
            if max(change.base for change in submitted.request.changes) > head.seq
        }
        fresh = [submitted for submitted in batch if submitted.commit_id not in answered]
        rules = await self._policies.page(connection, project_id, head.policy_version)
        authorities = await self._authorities(connection, rules, fresh)
        fresh = [
            await self._with_folders_spelt_out(connection, submitted, authorities[submitted.caller.token.id])
            for submitted in fresh
        ]
        loaded = await self._repository.load(
            connection,
            project_id,
            head.seq,
            fresh,
            with_authors=rules.policy.uses_ranks,
            added=_added(fresh, authorities),
        )
        contents.sizes |= loaded.sizes
        await self._preload(connection, fresh, loaded, contents)
        planner = Planner(
            tree=loaded.tree,
            bases=loaded.bases,
            policy=rules.policy,
            authorities=authorities,
            contents=contents,
            now=self._clock.now(),
        )
        return _Planned(plan=planner.plan(fresh), fresh=fresh, answered=answered)

    async def _with_folders_spelt_out(
        self, connection: Connection, submitted: Submitted, authority: PathAuthority
    ) -> Submitted:
        request = submitted.request
        changes = await expand_folders(connection, self._tree, request.project_id, authority, request.changes)
        return replace(submitted, request=replace(request, changes=changes))

    async def _authorities(
        self, connection: Connection, rules: PolicyPage, fresh: list[Submitted]
    ) -> dict[TokenId, PathAuthority]:
        """By token id. Memberships are read anew: they are not part of the policy's version."""
        callers = {submitted.caller.token.id: submitted.caller for submitted in fresh}
        principals = {caller.principal.id for caller in callers.values()}
        groups = await self._repository.groups(connection, principals) if rules.policy.uses_groups else {}
        return {
            token_id: rules.authority(caller, groups.get(caller.principal.id, frozenset()))
            for token_id, caller in callers.items()
        }

    async def _answered(
        self, connection: Connection, project_id: ProjectId, batch: list[Submitted]
    ) -> dict[UUID, CommitAnswer | ContextbaseError]:
        """By commit id: what requests that were made before, or twice in this batch, are told."""
        keyed = [(submitted, (submitted.caller.principal.id, submitted.request.key)) for submitted in batch]
        known = await self._repository.answered(
            connection, project_id, [(who, key) for _, (who, key) in keyed if key is not None]
        )
        answers: dict[UUID, CommitAnswer | ContextbaseError] = {}
        for submitted, (who, key) in keyed:
            if key is None or (who, key) not in known:
                continue
            request_hash, text = known[who, key]
            if request_hash != submitted.request_hash:
                answers[submitted.commit_id] = _other_request(key)
            else:
                answers[submitted.commit_id] = answer_from_json(text)
        return answers

    async def _repeated(self, connection: Connection, project_id: ProjectId, fresh: list[Submitted]) -> bool:
        """Whether another process answered one of these since we looked: decided under the lock."""
        return bool(await self._answered(connection, project_id, fresh))

    async def _preload(
        self, connection: Connection, batch: list[Submitted], loaded: LoadedBatch, contents: Contents
    ) -> None:
        """The contents that merges will ask for, in one reading."""
        times: Counter[TreePath] = Counter(change.path for submitted in batch for change in submitted.request.changes)
        wanted = set()
        for submitted in batch:
            for change in submitted.request.changes:
                current = loaded.tree.loaded(change.path)
                base = loaded.bases.get((change.path, change.base))
                if current is base and times[change.path] == 1:
                    continue
                wanted |= {live.content_hash for live in (current, base) if live is not None and live.content_hash}
                if change.content is not None:
                    wanted.add(change.content.hash)
        contents.loaded |= self._contents.find(wanted - contents.loaded.keys())
        missing = [name for name in wanted if name not in contents.loaded]
        read = await self._repository.inline_contents(connection, missing)
        for name, content in read.items():
            self._contents.keep(name, content)
        contents.loaded |= read

    async def _write(
        self,
        connection: Connection,
        project_id: ProjectId,
        head: LockedHead,
        planned: "_Planned",
        contents: Contents,
    ) -> None:
        plan = planned.plan
        large = [name for name in plan.stored - contents.put if contents.sizes[name] >= self._catalog.limit]
        if large:
            raise _StoreFirst(large)
        small = {name: contents.loaded[name] for name in plan.stored if contents.sizes[name] < self._catalog.limit}
        collected = await self._repository.store_inline(connection, small)
        if collected:
            raise _StoreFirst(collected)
        if plan.commits:
            await self._head.append(connection, project_id, head, plan.commits)
            await self._repository.write_sides(connection, project_id, plan)
        if plan.audit:
            await self._audit.append(connection, project_id, plan.audit)
        pairs = zip(planned.fresh, plan.answers, strict=True)
        await self._repository.record_answers(
            connection, project_id, [(submitted, answer_to_json(answer)) for submitted, answer in pairs]
        )

    async def _happened(self, project_id: ProjectId, plan: BatchPlan) -> bool:
        """After a connection lost around COMMIT: ask, as soon as the database answers again, whether it was done.

        Under the head's lock, which the lost transaction holds for as long as its COMMIT may still succeed."""
        if not plan.commits:
            return False
        deadline = asyncio.get_running_loop().time() + _ASK_SECONDS
        while True:
            try:
                async with self._database.transaction() as connection:
                    await self._head.lock(connection, project_id)
                    return await self._head.has_commit(connection, project_id, plan.commits[0].id)
            except DatabaseUnavailable:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Planned:
    plan: BatchPlan
    fresh: list[Submitted]  # the requests the plan is about, in its order
    answered: dict[UUID, CommitAnswer | ContextbaseError]

    def answers(self, batch: list[Submitted]) -> list[CommitAnswer | ContextbaseError]:
        new = {submitted.commit_id: answer for submitted, answer in zip(self.fresh, self.plan.answers, strict=True)}
        return [new.get(submitted.commit_id) or self.answered[submitted.commit_id] for submitted in batch]


class _StoreFirst(Exception):
    """The commit needs blobs that are too large for its transaction, or that GC is removing: store them, then retry."""

    def __init__(self, names: list[ContentHash]) -> None:
        super().__init__(f"{len(names)} blobs")
        self.names = names


def _contents_of(batch: list[Submitted]) -> Contents:
    contents = Contents()
    for submitted in batch:
        for change in submitted.request.changes:
            if change.content is not None:
                contents.sizes[change.content.hash] = change.content.size
                if change.content.inline is not None:
                    contents.loaded[change.content.hash] = change.content.inline
    return contents


def _added(batch: list[Submitted], authorities: Mapping[TokenId, PathAuthority]) -> set[TreePath]:
    """The names that somebody writes who may only add."""
    return {
        change.path
        for submitted in batch
        for change in submitted.request.changes
        if change.action is ChangeAction.WRITE
        and authorities[submitted.caller.token.id].level(change.path) is Level.READ_ADD
    }


def _from_the_future(submitted: Submitted, head: Seq) -> InvalidInput:
    base = max(change.base for change in submitted.request.changes)
    return InvalidInput(f"The base {base} is after the project's head {head}.")


def _other_request(key: str) -> Conflict:
    return Conflict(f"The idempotency key '{key}' was used for another request; use a new one.", key=key)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
