"""Reviews, and what advises on them."""

from contextbase.audit.repository import AuditRepository
from contextbase.config import Settings
from contextbase.db.database import Database
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.service import Gate
from contextbase.ids import SystemClock
from contextbase.review.adviser import Adviser
from contextbase.review.assessment import Assessments
from contextbase.review.callers import SystemPrincipal
from contextbase.review.chat import ChatResolver
from contextbase.review.closer import ReviewCloser
from contextbase.review.detail import Showing
from contextbase.review.repository import ReviewRepository
from contextbase.review.retry import RetryingResolver
from contextbase.review.service import ReviewService
from contextbase.review.upkeep import Upkeep
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.streams.notifier import Notifier

__all__ = ["open_reviews"]


def open_reviews(
    settings: Settings,
    database: Database,
    gate: Gate,
    desk: ReviewCloser,
    catalog: BlobCatalog,
    *,
    audit: AuditRepository,
    notifier: Notifier,
    merges: LongMerges,
) -> tuple[ReviewService, Upkeep]:
    repository, clock, system = ReviewRepository(), SystemClock(), SystemPrincipal(database)
    standings = Assessments(database=database, gate=gate, repository=repository, catalog=catalog, merges=merges)
    adviser = None
    if settings.resolver_url is not None:
        key = settings.resolver_api_key
        resolver = ChatResolver(
            url=settings.resolver_url,
            model=settings.resolver_model,
            api_key=None if key is None else key.get_secret_value(),
            timeout_seconds=settings.resolver_timeout_seconds,
        )
        adviser = Adviser(
            database=database,
            repository=repository,
            standings=standings,
            desk=desk,
            system=system,
            resolver=RetryingResolver(resolver),
            clock=clock,
            applies=settings.resolver_apply,
        )
    upkeep = Upkeep(
        database=database, repository=repository, standings=standings, desk=desk, system=system, adviser=adviser
    )
    reviews = ReviewService(
        database=database,
        gate=gate,
        repository=repository,
        standings=standings,
        showing=Showing(standings=standings, catalog=catalog),
        desk=desk,
        upkeep=upkeep,
        audit=audit,
        clock=clock,
        hint=notifier.hint_project,
    )
    return reviews, upkeep
