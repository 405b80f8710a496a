"""Group commit: concurrent requests to a project are folded into one transaction, by one leader per process.

The leader drafts a batch in memory, on the head as this process left it, while the batch before is being written.
The writer lands the batch in one statement, which does nothing unless the head is the one the draft was made on, and
answers when that is durable. If another process moved the head meanwhile, the batch is planned again under its lock, so
that nobody starves; from then on the processes take turns.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import asyncpg

from contextbase.audit.chain import AuditExtension
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import (
    BlobMissing,
    Conflict,
    ContextbaseError,
    Damaged,
    DatabaseUnavailable,
    TooBusy,
    Unavailable,
)
from contextbase.gate.answers import answer_to_json
from contextbase.gate.batch import BatchPlan, Submitted
from contextbase.gate.draft import Draft
from contextbase.gate.drafter import Drafter
from contextbase.gate.metrics import GateMetrics
from contextbase.gate.model import CommitAnswer
from contextbase.gate.queue import Batch, ProjectQueue, QueuedCommit
from contextbase.gate.repository import GateRepository
from contextbase.gate.statistics import VersionStatistics
from contextbase.gate.turns import Turns
from contextbase.gate.working_tree import WorkingTree
from contextbase.ids import ContentHash, ProjectId
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.head import AnsweredBefore, HeadRepository
from contextbase.storage.landing import KeptAnswer, Landing

__all__ = ["GroupCommit"]

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 5_000
_MOST_ATTEMPTS: Final = 100
_MOST_LINES: Final = 200
_MOST_TO_CATCH_UP: Final = 2_000
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
        drafter: Drafter,
        metrics: GateMetrics,
        turns: Turns,
        hint: Callable[[ProjectId], None] = lambda _: None,  # told of each batch: readers may want to look
    ) -> None:
        self._database = database
        self._repository = repository
        self._head = head
        self._audit = audit
        self._catalog = catalog
        self._drafter = drafter
        self._metrics = metrics
        self._turns = turns
        self._hint = hint
        self._statistics = VersionStatistics(database, repository)
        self._lines: dict[ProjectId, ProjectQueue] = {}

    async def commit(self, submitted: Submitted) -> CommitAnswer:
        """Wait in line and return the answer once it is durable. Cancelling the caller does not undo the request."""
        project_id = submitted.request.project_id
        line = self._lines.pop(project_id, None) or ProjectQueue(turn=self._turns.of(project_id))
        self._lines[project_id] = line  # the last used is the last
        if len(line.waiting) >= MOST_WAITING:
            raise TooBusy("Too many commits wait for this project; try again in a moment.")
        entry = QueuedCommit.of(submitted)
        line.join(entry)
        if line.leader is None:
            line.leader = asyncio.create_task(self._lead(project_id, line), name=f"gate-{project_id}")
        return await entry.answer

    async def close(self) -> None:
        """Finish what was taken on."""
        leaders = [line.leader for line in self._lines.values() if line.leader is not None]
        await asyncio.gather(*leaders, return_exceptions=True)
        await self._statistics.close()

    async def _lead(self, project_id: ProjectId, line: ProjectQueue) -> None:
        """Serve the line for as long as anybody waits."""
        try:
            while line.waiting:
                await self._serve(project_id, line)
                await line.turn.end()
        finally:
            line.leader = None
            self._forget_idle()

    async def _serve(self, project_id: ProjectId, line: ProjectQueue) -> None:
        """Draft the next batch while one is written, until nobody waits."""
        batch = Batch()
        writing: asyncio.Task[bool] | None = None
        try:
            while line.waiting or batch.entries or writing is not None:
                if writing is None and line.turn.is_due:
                    await line.turn.next()
                    await self._catch_up(project_id, line)
                if writing is None or not writing.done():
                    if not line.turn.is_due and (taken := line.take(batch)):
                        await self._draft(project_id, line, batch, taken)
                    elif writing is not None:
                        await line.arrival_or(writing)
                        await asyncio.sleep(0)  # those who come at the same moment come together
                if writing is None or writing.done():
                    as_drafted = writing is None or writing.result()
                    if not as_drafted and not batch.stands_on(line.tree):
                        batch = await self._drafted_anew(project_id, line, batch)
                    line.foresee(batch)
                    writing = asyncio.create_task(self._write(project_id, line, batch)) if batch.entries else None
                    batch = Batch()
        except Exception:  # noqa: BLE001 - whatever it is, everybody who waits is answered
            _log.exception("the leader of a project failed")
            line.fail(batch, Unavailable("The commit could not be made; try again."))

    async def _catch_up(self, project_id: ProjectId, line: ProjectQueue) -> None:
        """Learn what others wrote when it was their turn. Nothing is under way: the tree is that of the known head."""
        known, tree = line.head, line.tree
        line.forget()
        if known is None or tree is None:
            return
        try:
            async with self._database.connection() as connection:
                head = await self._head.read(connection, project_id)
                if head != known:
                    await self._audit.look(connection, project_id)
                    made = await self._repository.versions_between(
                        connection, project_id, known.seq, head.seq, most=_MOST_TO_CATCH_UP
                    )
                    if made is None or head.epoch != known.epoch:
                        return
                    tree.follow(made)
        except ContextbaseError as error:  # it shows again, and is answered, when something is written
            _log.info("what others wrote could not be read", extra={"error": type(error).__name__})
        else:
            line.head, line.tree = head, tree

    def _forget_idle(self) -> None:
        """What is known of projects that nobody has written to for the longest time."""
        idle = [project_id for project_id, line in self._lines.items() if line.leader is None]
        for project_id in idle[: max(0, len(self._lines) - _MOST_LINES)]:
            del self._lines[project_id]

    async def _drafted_anew(self, project_id: ProjectId, line: ProjectQueue, batch: Batch) -> Batch:
        again = Batch()
        if batch.entries:
            await self._draft(project_id, line, again, batch.entries)
        return again

    async def _draft(self, project_id: ProjectId, line: ProjectQueue, batch: Batch, taken: list[QueuedCommit]) -> None:
        """Add requests to the batch and its draft. What cannot be drafted now is planned under the lock."""
        batch.entries += taken
        if batch.is_plain:
            return
        try:
            async with self._database.connection() as connection:
                if batch.draft is None:
                    head, tree = line.head, line.tree
                    if head is None or tree is None:
                        head = await self._head.read(connection, project_id)
                        tree = line.tree = WorkingTree()
                    batch.draft = await self._drafter.begin(connection, project_id, head, tree)
                await self._drafter.extend(connection, batch.draft, [entry.submitted for entry in taken])
        except Exception as error:  # noqa: BLE001 - whatever it is, it shows again, and is answered, when it is written
            _log.info("a draft failed", extra={"error": type(error).__name__})
            batch.draft, batch.is_plain = None, True
            line.forget()

    async def _write(self, project_id: ProjectId, line: ProjectQueue, batch: Batch) -> bool:
        """Write and answer a batch. False if not as drafted: what was drafted on it does not hold either."""
        self._metrics.batch_size.observe(len(batch.entries))
        for entry in batch.entries:
            self._metrics.wait.observe(entry.waited())
        submitted = [entry.submitted for entry in batch.entries]
        try:
            written = await self._settle(project_id, submitted, batch.draft)
        except Exception as error:  # noqa: BLE001 - whatever it is, each request gets an answer of its own
            line.forget()
            await self._one_by_one(project_id, line, batch.entries, error)
            return False
        if written is not batch.draft:
            line.know(written)
            if batch.draft is not None and written.head != batch.draft.head:
                line.turn.notice()
        for entry, answer in zip(batch.entries, written.answers(submitted), strict=True):
            entry.resolve(answer)
        return written is batch.draft

    async def _one_by_one(
        self, project_id: ProjectId, line: ProjectQueue, entries: list[QueuedCommit], error: Exception
    ) -> None:
        """One bad request must not fail its neighbours: replay singly."""
        if len(entries) == 1:
            entries[0].resolve(error)
            return
        _log.warning("a batch of %d failed (%s); replaying singly", len(entries), type(error).__name__)
        self._metrics.replays.inc()
        for entry in entries:
            await self._write(project_id, line, Batch(entries=[entry], is_plain=True))

    async def _settle(self, project_id: ProjectId, batch: list[Submitted], draft: Draft | None) -> Draft:
        """Returns the draft that was written: the one given, unless the head was not what it was made on."""
        if draft is not None and await self._land_at_once(draft):
            return draft
        repeated = stored_again = False
        for _ in range(_MOST_ATTEMPTS):
            try:
                return await self._attempt(project_id, batch, draft, repeated=repeated)
            except _StoreFirst as first:
                for name, content in first.contents.items():
                    await self._catalog.put_bytes(content, expected=name)
            except AnsweredBefore:
                repeated = True
            except asyncpg.DeadlockDetectedError:  # with a purge, say, which is through by now
                self._metrics.lost_races.inc()
            except BlobMissing:  # collected since it was stored, if the operator's grace period is that short
                if stored_again or not any(submitted.stored for submitted in batch):
                    raise
                draft, stored_again = None, True
                for submitted in batch:
                    submitted.stored.clear()
        raise Conflict("The commit could not be settled; try again.")

    async def _land_at_once(self, draft: Draft) -> bool:
        """In one statement, without a lock before it. False: the head is elsewhere, or more is to be done."""
        audit = self._audit.foreseen(draft.project_id, draft.plan.audit)
        if audit is None or draft.leases is not None or draft.plan.closings:
            return False
        try:
            async with self._database.connection() as connection:
                with self._metrics.lock.time():
                    is_in = await self._head.land(connection, self._landing(draft, audit))
        except (AnsweredBefore, BlobMissing, asyncpg.DeadlockDetectedError):
            return False
        except DatabaseUnavailable:
            if not await self._happened(draft.project_id, draft.plan):
                raise
            is_in = True
        if is_in:
            self._has_landed(draft, audit)
        return is_in

    async def _attempt(
        self, project_id: ProjectId, batch: list[Submitted], draft: Draft | None, *, repeated: bool
    ) -> Draft:
        """Under the head's lock, and planned again if it is not the one that the draft was made on."""
        written, audit = draft, None
        try:
            async with self._database.transaction() as connection:
                locked = await self._head.lock(connection, project_id)
                with self._metrics.lock.time():
                    if draft is not None and locked != draft.head:
                        self._metrics.lost_races.inc()
                    is_as_drafted = written is not None and not repeated and locked == written.head
                    if written is None or not (is_as_drafted and await self._drafter.holds(connection, written)):
                        written = await self._drafter.begin(connection, project_id, locked)
                        fresh = await self._drafter.recall(connection, written, batch)
                        await self._drafter.extend(connection, written, fresh)
                    audit = await self._audit.extension(connection, project_id, written.plan.audit)
                    await self._land(connection, written, audit)
        except DatabaseUnavailable:
            if written is None or audit is None or not await self._happened(project_id, written.plan):
                raise
        self._has_landed(written, audit)
        return written

    async def _land(self, connection: Connection, draft: Draft, audit: AuditExtension) -> None:
        landing = self._landing(draft, audit)
        first = await self._catalog.keep_small(connection, landing.contents)
        if first:
            raise _StoreFirst(draft, first)
        if not await self._head.land(connection, landing):
            raise Damaged(f"The project {draft.project_id} is not where its lock says.")
        if draft.plan.closings:
            await self._repository.close_reviews(connection, draft.project_id, draft.plan.closings)

    def _landing(self, draft: Draft, audit: AuditExtension) -> Landing:
        plan, contents = draft.plan, draft.contents
        return Landing(
            head=draft.head,
            audit=audit,
            commits=plan.commits,
            contents={
                name: contents.loaded[name] for name in plan.stored if contents.sizes[name] < self._catalog.limit
            },
            bare_nodes=plan.bare_nodes,
            sides=plan.sides,
            reviews=plan.reviews,
            answers=[
                KeptAnswer(
                    principal_id=submitted.caller.principal.id,
                    key=submitted.request.key,
                    request_hash=submitted.request_hash,
                    answer=answer_to_json(answer),
                )
                for submitted, answer in zip(draft.fresh, plan.answers, strict=True)
                if submitted.request.key is not None
            ],
        )

    def _has_landed(self, draft: Draft, audit: AuditExtension) -> None:
        self._audit.remember(audit)
        self._statistics.wrote(sum(len(commit.versions) for commit in draft.plan.commits))
        if draft.plan.commits or draft.plan.closings:
            self._hint(draft.project_id)

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


class _StoreFirst(Exception):
    """The commit needs small blobs that GC is removing this moment: store them once that is done, then retry."""

    def __init__(self, draft: Draft, names: list[ContentHash]) -> None:
        super().__init__(f"{len(names)} blobs")
        self.contents = {name: draft.contents.loaded[name] for name in names}
