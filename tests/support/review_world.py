"""A review queue over a gate and a real database, and short ways to use it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from tests.support.gate_world import GateWorld, token_of, write
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Database
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.model import ChangeStatus, Content
from contextbase.gate.repository import GateRepository
from contextbase.identity.model import Caller, PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import ContentHash, Seq, SystemClock
from contextbase.review.adviser import Adviser
from contextbase.review.assessment import Assessments
from contextbase.review.callers import SystemPrincipal
from contextbase.review.closer import ReviewCloser
from contextbase.review.detail import Showing
from contextbase.review.model import Choice, ConflictPick, ItemFilter, ItemPage, ReviewDecision, ReviewItem, Shown
from contextbase.review.ports import Resolver
from contextbase.review.repository import ReviewRepository
from contextbase.review.service import ReviewService
from contextbase.review.upkeep import Upkeep
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import StreamEvent

__all__ = ["ReviewWorld"]


@dataclass
class ReviewWorld:
    gate: GateWorld
    reviews: ReviewService
    upkeep: Upkeep
    standings: Assessments
    repository: ReviewRepository
    desk: ReviewCloser

    @classmethod
    async def start(cls, database: Database, folder: Path, **options: Any) -> Self:
        return cls.over(await GateWorld.start(database, folder, **options))

    @classmethod
    def over(cls, world: GateWorld) -> Self:
        repository, clock, audit = ReviewRepository(), SystemClock(), AuditRepository(TEST_AUDIT_KEY)
        database, gate = world.database, world.gate
        standings = Assessments(
            database=database, gate=gate, repository=repository, catalog=world.catalog,
            merges=LongMerges(ThreadCompute()),
        )  # fmt: skip
        desk = ReviewCloser(database=database, gate=gate, repository=GateRepository(), audit=audit, clock=clock)
        upkeep = Upkeep(
            database=database, repository=repository, standings=standings, desk=desk, system=SystemPrincipal(database)
        )
        reviews = ReviewService(
            database=database, gate=gate, repository=repository, standings=standings,
            showing=Showing(standings=standings, catalog=world.catalog), desk=desk, upkeep=upkeep, audit=audit,
            clock=clock,
        )  # fmt: skip
        return cls(gate=world, reviews=reviews, upkeep=upkeep, standings=standings, repository=repository, desk=desk)

    async def user(self, name: str) -> Caller:
        async with self.gate.database.transaction() as connection:
            principal = await IdentityRepository().ensure_principal(connection, PrincipalKind.USER, name)
        return Caller.with_token(token_of(principal))

    async def contested(self, path: str, base: bytes, ours: bytes, theirs: bytes, who: Caller | None = None) -> UUID:
        """A review item: `ours` is in the head when `theirs`, made from `base`, arrives."""
        made = await self.gate.commit(write(path, base, await self.head()))
        await self.gate.commit(write(path, ours, made.seq))
        answer = await self.gate.one(write(path, theirs, made.seq), who)
        assert answer.status is ChangeStatus.IN_REVIEW, answer
        assert answer.review_id is not None
        return answer.review_id

    async def head(self) -> int:
        async with self.gate.database.connection() as connection:
            return int(await connection.fetchval("SELECT head FROM projects WHERE id = $1", self.gate.project.id))

    async def write(self, path: str, content: bytes, who: Caller | None = None) -> None:
        """A third party's change, made from the head."""
        answer = await self.gate.one(write(path, content, await self.head()), who)
        assert answer.status in (ChangeStatus.WRITTEN, ChangeStatus.MERGED), answer

    async def file(self, path: str) -> bytes | None:
        return (await self.gate.files()).get(path)

    async def show(self, review_id: UUID, who: Caller | None = None) -> Shown:
        return await self.reviews.show(who or self.gate.owner, self.gate.project.id, review_id)

    async def stored(self, review_id: UUID) -> ReviewItem:
        async with self.gate.database.connection() as connection:
            item = await self.repository.one(connection, self.gate.project.id, review_id)
        assert item is not None
        return item

    async def page(self, who: Caller | None = None, wanted: ItemFilter | None = None, **options: Any) -> ItemPage:
        return await self.reviews.page(who or self.gate.owner, self.gate.project.id, wanted or ItemFilter(), **options)

    async def resolve(
        self,
        review_id: UUID,
        choice: str,
        *,
        who: Caller | None = None,
        at: int | None = None,
        picks: tuple[ConflictPick, ...] = (),
        content: bytes | None = None,
    ) -> ReviewItem:
        given = None if content is None else Content(hash=ContentHash.of(content), size=len(content), inline=content)
        decision = ReviewDecision(
            choice=Choice(choice), ours_seq=None if at is None else Seq(at), picks=picks, content=given
        )
        return await self.reviews.resolve(who or self.gate.owner, self.gate.project.id, review_id, decision)

    async def events(self) -> list[StreamEvent]:
        feed = FeedRepository()
        async with self.gate.database.connection() as connection:
            heads = await feed.heads(connection, self.gate.project.id)
            return await feed.events(connection, heads, 0, 1000)

    async def audited(self) -> list[str]:
        async with self.gate.database.connection() as connection:
            rows = await connection.fetch(
                "SELECT action FROM audit WHERE chain = $1 ORDER BY number", self.gate.project.id
            )
        return [row["action"] for row in rows]

    def adviser(self, resolver: Resolver, *, applies: bool = False) -> Adviser:
        return Adviser(
            database=self.gate.database, repository=self.repository, standings=self.standings, desk=self.desk,
            system=SystemPrincipal(self.gate.database), resolver=resolver, clock=SystemClock(), applies=applies,
        )  # fmt: skip
