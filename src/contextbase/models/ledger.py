"""Budgets and usage in the database. Limits are checked by the statement that reserves, so that no two requests share
what is left."""

from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from contextbase.db.database import Database
from contextbase.ids import Clock
from contextbase.models.dialects import GatewayError, GatewayProblem
from contextbase.models.model import BudgetScope, ModelContext, RunUsage, UsageRecord
from contextbase.models.repository import ModelRepository, SpendingKey

__all__ = ["DatabaseLedger", "first_of_month"]

_FIRST_MONTH: Final = date(1, 1, 1)  # of a run, which has no months
_RUN: Final = "run"
_STALE: Final = timedelta(days=1)


class DatabaseLedger:
    def __init__(
        self, *, database: Database, repository: ModelRepository, clock: Clock, run_budget: int | None
    ) -> None:
        self._database = database
        self._repository = repository
        self._clock = clock
        self._run_budget = run_budget

    async def reserve(self, context: ModelContext, request_id: UUID, amount: int) -> None:
        user, project, run = self._keys(context)
        async with self._database.transaction() as connection:
            limits = await self._repository.limits(connection, context.owner.id, context.project_id)
            budgets = [limit for limit in (self._run_budget, context.run_budget) if limit is not None]
            run_limit = min(budgets, default=None)
            # Always in this order, so that two requests never wait for each other.
            wanted = [
                (run, run_limit, "this run"),
                (user, limits.get(BudgetScope.USER), f"{context.owner.name} this month"),
                (project, limits.get(BudgetScope.PROJECT), "this project this month"),
            ]
            held: list[SpendingKey] = []
            for key, limit, whose in wanted:
                if limit is None:
                    continue
                if not await self._repository.reserve(connection, key, amount, limit):
                    raise GatewayError(
                        GatewayProblem.BUDGET_EXHAUSTED,
                        f"The model budget of {whose} leaves no room for this request: {_shown(limit)} in all, and up "
                        f"to {_shown(amount)} are needed. Ask an administrator: `contextbase model budget`.",
                    )
                held.append(key)
            if held:
                await self._repository.put_reservation(connection, request_id, held, amount)

    async def settle(self, context: ModelContext, request_id: UUID, record: UsageRecord | None) -> None:
        async with self._database.transaction() as connection:
            await self._repository.release(connection, request_id)
            if record is not None and await self._repository.log_usage(connection, context, record):
                await self._repository.spend(connection, self._keys(context), record.cost)

    async def release_stale(self) -> None:
        """Give back what servers that died had set aside."""
        async with self._database.transaction() as connection:
            for request_id in await self._repository.stale_reservations(connection, _STALE):
                await self._repository.release(connection, request_id)

    async def usage_of_run(self, run_id: UUID) -> RunUsage:
        async with self._database.connection() as connection:
            return await self._repository.usage_of_run(connection, run_id)

    def _keys(self, context: ModelContext) -> tuple[SpendingKey, SpendingKey, SpendingKey]:
        month = first_of_month(self._clock.now())
        return (
            SpendingKey(scope=BudgetScope.USER, subject_id=context.owner.id, month=month),
            SpendingKey(scope=BudgetScope.PROJECT, subject_id=context.project_id, month=month),
            SpendingKey(scope=_RUN, subject_id=context.run_id, month=_FIRST_MONTH),
        )


def first_of_month(now: datetime) -> date:
    return now.astimezone(UTC).date().replace(day=1)


def _shown(micro_units: int) -> str:
    return f"{micro_units / 1_000_000:.2f}"
