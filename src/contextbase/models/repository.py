"""Upstreams, allowed models, budgets and usage in the database. Every method works in the caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.agent_vocabulary import UsageGroup
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.ids import PrincipalId, ProjectId
from contextbase.models.model import (
    AllowedModel,
    BudgetScope,
    BudgetUse,
    ModelContext,
    ModelProtocol,
    ModelRole,
    ModelUpstream,
    RunUsage,
    TokenCounts,
    UpstreamScope,
    UsageRecord,
    UsageSum,
)

__all__ = ["ModelRepository", "SpendingKey"]

_SQL: Final = load_queries("contextbase.models")
_UPSTREAM: Final = RowShape(ModelUpstream, protocol=ModelProtocol, scope=UpstreamScope)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpendingKey:
    """Whose spending, and when."""

    scope: str
    subject_id: UUID
    month: date


class ModelRepository:
    async def upstreams(self, connection: Connection) -> list[ModelUpstream]:
        rows = await connection.fetch(_SQL.upstreams)
        return [_upstream(row, row["project"] or row["principal"] or "") for row in rows]

    async def upstream_for(
        self, connection: Connection, protocol: ModelProtocol, project_id: ProjectId, principal_id: PrincipalId
    ) -> ModelUpstream | None:
        row = await connection.fetchrow(_SQL.upstream_for, protocol, project_id, principal_id)
        return None if row is None else _upstream(row)

    async def add_upstream(self, connection: Connection, upstream: ModelUpstream, by: PrincipalId) -> None:
        """Raises asyncpg's `UniqueViolationError`."""
        await connection.execute(
            _SQL.put_upstream,
            upstream.id,
            upstream.name,
            upstream.protocol,
            upstream.base_url,
            upstream.sealed_key,
            upstream.scope,
            upstream.project_id,
            upstream.principal_id,
            upstream.may_be_private,
            by,
        )

    async def delete_upstream(self, connection: Connection, name: str) -> bool:
        return await connection.fetchrow(_SQL.delete_upstream, name) is not None

    async def models(self, connection: Connection) -> list[AllowedModel]:
        return [_model(row) for row in await connection.fetch(_SQL.allowed_models)]

    async def put_model(self, connection: Connection, model: AllowedModel) -> None:
        prices = model.prices or (None, None, None, None)
        await connection.execute(_SQL.put_model, model.name, model.protocol, model.role, *prices)

    async def delete_model(self, connection: Connection, name: str) -> bool:
        return await connection.fetchval(_SQL.delete_model, name) is not None

    async def budgets(self, connection: Connection, month: date) -> list[BudgetUse]:
        return [
            BudgetUse(
                scope=BudgetScope(row["scope"]),
                subject=row["subject"] or str(row["subject_id"]),
                monthly_limit=row["monthly_limit"],
                spent=row["spent"],
                reserved=row["reserved"],
            )
            for row in await connection.fetch(_SQL.budgets, month)
        ]

    async def limits(
        self, connection: Connection, principal_id: PrincipalId, project_id: ProjectId
    ) -> dict[BudgetScope, int]:
        rows = await connection.fetch(_SQL.limits, principal_id, project_id)
        return {BudgetScope(row["scope"]): row["monthly_limit"] for row in rows}

    async def put_budget(self, connection: Connection, scope: BudgetScope, subject_id: UUID, limit: int) -> None:
        await connection.execute(_SQL.put_budget, scope, subject_id, limit)

    async def delete_budget(self, connection: Connection, scope: BudgetScope, subject_id: UUID) -> bool:
        return await connection.fetchval(_SQL.delete_budget, scope, subject_id) is not None

    async def reserve(self, connection: Connection, key: SpendingKey, amount: int, limit: int) -> bool:
        """False if the limit leaves no room."""
        found = await connection.fetchval(_SQL.reserve, key.scope, key.subject_id, key.month, amount, limit)
        return found is not None

    async def put_reservation(
        self, connection: Connection, request_id: UUID, keys: Sequence[SpendingKey], amount: int
    ) -> None:
        await connection.execute(_SQL.put_reservation, request_id, *_columns(keys), amount)

    async def release(self, connection: Connection, request_id: UUID) -> None:
        await connection.execute(_SQL.release, request_id)

    async def stale_reservations(self, connection: Connection, age: timedelta) -> list[UUID]:
        return [row["id"] for row in await connection.fetch(_SQL.stale_reservations, age)]

    async def log_usage(self, connection: Connection, context: ModelContext, record: UsageRecord) -> bool:
        """False if it was logged before."""
        counts = record.counts
        logged = await connection.fetchval(
            _SQL.log_usage,
            record.id,
            record.upstream,
            record.upstream_request_id,
            context.session_id,
            context.run_id,
            context.attempt,
            context.owner.id,
            context.project_id,
            record.model,
            record.status,
            counts.input,
            counts.output,
            counts.cache_read,
            counts.cache_write,
            counts.is_estimate,
            record.cost,
        )
        return logged is not None

    async def spend(self, connection: Connection, keys: Sequence[SpendingKey], cost: int) -> None:
        await connection.execute(_SQL.spend, *_columns(keys), cost)

    async def usage_of_run(self, connection: Connection, run_id: UUID) -> RunUsage:
        found = await self.usage_of_runs(connection, [run_id])
        return found.get(run_id) or RunUsage(requests=0, counts=TokenCounts(), cost=0)

    async def usage_of_runs(self, connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, RunUsage]:
        """Of those that asked a model."""
        rows = await connection.fetch(_SQL.usage_of_runs, run_ids)
        return {row["run_id"]: _usage(row) for row in rows}

    async def usage_sums(
        self, connection: Connection, group: UsageGroup, since: datetime, until: datetime, limit: int
    ) -> list[UsageSum]:
        rows = await connection.fetch(_SQL.usage_sums, group, since, until, limit)
        return [
            UsageSum(subject=row["subject"], requests=used.requests, counts=used.counts, cost=used.cost)
            for row in rows
            for used in [_usage(row)]
        ]

    async def egress_hosts(self, connection: Connection, project_id: ProjectId) -> list[str]:
        return [row["host"] for row in await connection.fetch(_SQL.egress_hosts, project_id)]

    async def replace_egress_hosts(self, connection: Connection, project_id: ProjectId, hosts: Sequence[str]) -> None:
        await connection.execute(_SQL.replace_egress_hosts, project_id, list(hosts))


def _columns(keys: Sequence[SpendingKey]) -> tuple[list[str], list[UUID], list[date]]:
    return [key.scope for key in keys], [key.subject_id for key in keys], [key.month for key in keys]


def _usage(row: asyncpg.Record) -> RunUsage:
    counts = TokenCounts(
        input=row["input"], output=row["output"], cache_read=row["cache_read"], cache_write=row["cache_write"]
    )
    return RunUsage(requests=row["requests"], counts=counts, cost=row["cost"])


def _upstream(row: asyncpg.Record, subject: str = "") -> ModelUpstream:
    return _UPSTREAM(row, subject=subject)


def _model(row: asyncpg.Record) -> AllowedModel:
    prices = (row["input_price"], row["output_price"], row["cache_read_price"], row["cache_write_price"])
    return AllowedModel(
        name=row["name"],
        protocol=ModelProtocol(row["protocol"]),
        role=ModelRole(row["role"]),
        prices=None if prices[0] is None else prices,
    )
