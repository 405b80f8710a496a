"""Reviews, and what advises on them."""

from contextbase.bootstrap.foundation import Foundation
from contextbase.bootstrap.gate import WriteDoor
from contextbase.config import Settings
from contextbase.gate.long_merges import LongMerges
from contextbase.review.adviser import Adviser
from contextbase.review.assessment import Assessments
from contextbase.review.callers import SystemPrincipal
from contextbase.review.chat import ChatResolver
from contextbase.review.closer import ReviewCloser
from contextbase.review.detail import Showing
from contextbase.review.ports import Resolver
from contextbase.review.repository import ReviewRepository
from contextbase.review.retry import RetryingResolver
from contextbase.review.service import ReviewService
from contextbase.review.upkeep import Upkeep

__all__ = ["reviews_of"]


def reviews_of(foundation: Foundation, door: WriteDoor, *, merges: LongMerges) -> tuple[ReviewService, Upkeep]:
    database, catalog, clock = foundation.database, foundation.catalog, foundation.clock
    hint = foundation.notifier.hint_project
    repository, system = ReviewRepository(), SystemPrincipal(database)
    desk = ReviewCloser(
        database=database,
        gate=door.gate,
        repository=door.repository,
        audit=foundation.audit,
        clock=clock,
        hint=hint,
    )
    standings = Assessments(database=database, gate=door.gate, repository=repository, catalog=catalog, merges=merges)
    resolver = _resolver(foundation.settings)
    adviser = None
    if resolver is not None:
        adviser = Adviser(
            database=database,
            repository=repository,
            standings=standings,
            desk=desk,
            system=system,
            resolver=resolver,
            clock=clock,
            applies=foundation.settings.resolver.apply,
        )
    upkeep = Upkeep(
        database=database, repository=repository, standings=standings, desk=desk, system=system, adviser=adviser
    )
    reviews = ReviewService(
        database=database,
        gate=door.gate,
        repository=repository,
        standings=standings,
        showing=Showing(standings=standings, catalog=catalog),
        desk=desk,
        upkeep=upkeep,
        audit=foundation.audit,
        clock=clock,
        hint=hint,
    )
    return reviews, upkeep


def _resolver(settings: Settings) -> Resolver | None:
    """The one that the operator named."""
    if settings.resolver.url is None:
        return None
    key = settings.resolver.api_key
    chat = ChatResolver(
        url=settings.resolver.url,
        model=settings.resolver.model,
        api_key=None if key is None else key.get_secret_value(),
        timeout_seconds=settings.resolver.timeout_seconds,
    )
    return RetryingResolver(chat)
