"""Every chore there is, and how often it runs. A layer never starts a loop of its own."""

from datetime import timedelta

from contextbase.bootstrap.core import CoreServices
from contextbase.bootstrap.foundation import Foundation
from contextbase.bootstrap.machine_role import MachineRole
from contextbase.bootstrap.models import ModelServices
from contextbase.chores import Chore, ChoreRunner, Leadership, Where
from contextbase.chores.metrics import ChoreMetrics
from contextbase.chores.repository import ChoreRepository

__all__ = ["chore_runner"]


def chore_runner(
    foundation: Foundation,
    core: CoreServices,
    models: ModelServices,
    *,
    server: str,
    machine: MachineRole | None,
    may_lead: bool,
) -> ChoreRunner:
    """What touches the database alone is done by one of those that `may_lead`; what touches a machine, by that one."""
    repository, metrics = ChoreRepository(), ChoreMetrics(foundation.metrics)
    return ChoreRunner(
        [*_of_leader(core, models), *(machine.chores if machine is not None else ())],
        database=foundation.database,
        repository=repository,
        leadership=Leadership(
            database=foundation.database,
            repository=repository,
            server=server,
            lease=timedelta(seconds=foundation.settings.chores.lease_seconds),
            metrics=metrics,
        )
        if may_lead
        else None,
        server=server,
        metrics=metrics,
        clock=foundation.clock,
    )


def _of_leader(core: CoreServices, models: ModelServices) -> list[Chore]:
    """They touch the database alone."""
    return [
        Chore(name="prune-events", every=timedelta(hours=1), run=core.streams.prune, where=Where.LEADER),
        Chore(name="refresh-reviews", every=timedelta(seconds=30), run=core.review_upkeep.keep_up, where=Where.LEADER),
        Chore(name="index-contents", every=timedelta(seconds=5), run=core.search_indexer.index_all, where=Where.LEADER),
        Chore(name="expire-runs", every=timedelta(seconds=10), run=core.sessions.queue.expire, where=Where.LEADER),
        Chore(
            name="expire-questions", every=timedelta(seconds=15), run=core.sessions.questions.expire, where=Where.LEADER
        ),
        Chore(name="prune-logins", every=timedelta(hours=1), run=core.people.logins.prune, where=Where.LEADER),
        Chore(
            name="narrow-sessions",
            every=timedelta(seconds=10),
            run=core.sessions.narrowing.narrowed,
            where=Where.LEADER,
        ),
        Chore(
            name="keep-sessions", every=timedelta(minutes=1), run=core.sessions.lifecycle.keep_up, where=Where.LEADER
        ),
        Chore(
            name="release-model-budgets",
            every=timedelta(hours=1),
            run=models.ledger.release_stale,
            where=Where.LEADER,
        ),
    ]
