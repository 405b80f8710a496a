"""Asks a resolver about open items and keeps what it proposes; decides by it only where the operator said so."""

import logging
from typing import Final
from uuid import UUID

from contextbase.db.database import Database
from contextbase.errors import Conflict, Unavailable
from contextbase.gate.model import RESOLVER, ReviewState
from contextbase.ids import Clock, ProjectId
from contextbase.review.assessment import Assessment, Assessments
from contextbase.review.callers import SystemPrincipal
from contextbase.review.closer import ReviewCloser, Settling
from contextbase.review.model import Choice, ReviewDecision, ReviewItem, Suggestion
from contextbase.review.ports import Resolver
from contextbase.review.question import UnusableAnswer, name_of, question_of, texts_of
from contextbase.review.repository import ReviewRepository
from contextbase.review.resolution import changes_of

__all__ = ["Adviser"]

_log = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 10
_FIRST: Final = UUID(int=0)


class Adviser:
    """`applies`: whether a proposal that was found valid is committed, where the policy asks for no person."""

    def __init__(
        self,
        *,
        database: Database,
        repository: ReviewRepository,
        standings: Assessments,
        desk: ReviewCloser,
        system: SystemPrincipal,
        resolver: Resolver,
        clock: Clock,
        applies: bool,
    ) -> None:
        self._database = database
        self._repository = repository
        self._standings = standings
        self._desk = desk
        self._system = system
        self._resolver = resolver
        self._clock = clock
        self._applies = applies
        self._after = _FIRST  # where the next round goes on: one that cannot be answered must not hold up the others

    async def advise(self) -> int:
        """Ask about the next few items that were not asked about yet; returns how many got an answer of any kind."""
        async with self._database.connection() as connection:
            unasked = await self._repository.unasked(connection, self._after, _MOST_AT_ONCE)
        self._after = unasked[-1][1] if len(unasked) == _MOST_AT_ONCE else _FIRST
        answered = 0
        for project_id, review_id in unasked:
            async with self._database.connection() as connection:
                item = await self._repository.one(connection, project_id, review_id)
            if item is None or item.state is not ReviewState.OPEN:
                continue
            try:
                answered += await self.advise_on(project_id, item)
            except Unavailable as error:
                _log.warning("the resolver does not answer; asking again later", extra={"code": error.code})
                break
        return answered

    async def advise_on(self, project_id: ProjectId, item: ReviewItem) -> bool:
        """Ask about one item; False if there is nothing to ask about it."""
        standing = await self._standings.of(project_id, item)
        if not standing.conflicts:
            return False
        suggestion = await self._asked(standing)
        async with self._database.connection() as connection:
            await self._repository.put_suggestion(connection, project_id, item.id, suggestion)
        if self._applies and suggestion.texts is not None and not standing.needs_person:
            await self._apply(project_id, standing, suggestion, suggestion.texts)
        return True

    async def _asked(self, standing: Assessment) -> Suggestion:
        about, at = name_of(standing), self._clock.now()
        question = question_of(standing)
        if question is None:
            problem = "its conflicts cannot be asked about: not text, too long, or not to be told apart"
            return Suggestion(by="", at=at, about=about, texts=None, problem=problem)
        proposal = await self._resolver.propose(question)
        if proposal is None:
            return Suggestion(by="", at=at, about=about, texts=None, problem="the resolver's answer made no sense")
        try:
            texts = texts_of(standing, question, proposal)
        except UnusableAnswer as problem:
            return Suggestion(by=proposal.by, at=at, about=about, texts=None, problem=str(problem))
        return Suggestion(by=proposal.by, at=at, about=about, texts=texts)

    async def _apply(
        self, project_id: ProjectId, standing: Assessment, suggestion: Suggestion, texts: tuple[bytes, ...]
    ) -> None:
        item = standing.item
        try:
            await self._desk.commit(
                await self._system.caller(project_id),
                project_id,
                standing,
                changes_of(standing, ReviewDecision(choice=Choice.SUGGESTED), suggested=texts),
                message=f"Resolved {item.path} by {item.author.name} as {suggestion.by} suggested",
                state=ReviewState.RESOLVED,
                how=Settling(strategy=RESOLVER, told=f": it was merged as {suggestion.by} suggested"),
            )
        except Conflict as error:  # the head moved on: the next round looks at it again
            _log.info("a suggestion was not applied", extra={"review_id": str(item.id), "code": error.code})
