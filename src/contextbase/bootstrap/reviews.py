"""Reviews, and what advises on them."""

from contextbase.audit.repository import AuditRepository
from contextbase.config import Settings
from contextbase.db.database import Database
from contextbase.feed.notifier import Notifier
from contextbase.gate.service import Gate
from contextbase.ids import SystemClock
from contextbase.review.acting import SystemPrincipal
from contextbase.review.adviser import Adviser
from contextbase.review.chat import ChatResolver
from contextbase.review.desk import Desk
from contextbase.review.repository import ReviewRepository
from contextbase.review.retrying import RetryingResolver
from contextbase.review.service import Reviews
from contextbase.review.showing import Showing
from contextbase.review.standing import Standings
from contextbase.review.upkeep import Upkeep
from contextbase.storage.blobs.catalog import BlobCatalog

__all__ = ["open_reviews"]


def open_reviews(
    settings: Settings,
    database: Database,
    gate: Gate,
    desk: Desk,
    catalog: BlobCatalog,
    *,
    audit: AuditRepository,
    notifier: Notifier,
) -> tuple[Reviews, Upkeep]:
    repository, clock, system = ReviewRepository(), SystemClock(), SystemPrincipal(database)
    standings = Standings(database=database, gate=gate, repository=repository, catalog=catalog)
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
    reviews = Reviews(
        database=database,
        gate=gate,
        repository=repository,
        standings=standings,
        showing=Showing(standings=standings, catalog=catalog),
        desk=desk,
        upkeep=upkeep,
        audit=audit,
        clock=clock,
        hint=notifier.hint,
    )
    return reviews, upkeep
