"""Path rules, groups, merge rules and ranks in PostgreSQL. Every method works in the caller's transaction."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import NotFound
from contextbase.identity.levels import Level, PathRule, SubjectKind
from contextbase.identity.model import Principal, PrincipalKind, PrincipalName
from contextbase.ids import PrincipalId, ProjectId, new_uuid

__all__ = ["PolicyRepository"]

_SQL: Final = load_queries("contextbase.identity")


class PolicyRepository:
    async def read(self, connection: Connection, project_id: ProjectId) -> tuple[int, Level]:
        """The policy's version and the default level."""
        return _head(await connection.fetchrow(_SQL.read_policy, project_id), project_id)

    async def lock(self, connection: Connection, project_id: ProjectId) -> tuple[int, Level]:
        """Likewise, held until the transaction ends."""
        return _head(await connection.fetchrow(_SQL.lock_policy, project_id), project_id)

    async def bump(self, connection: Connection, project_id: ProjectId) -> None:
        await connection.execute(_SQL.bump_policy, project_id)

    async def bump_those_with_group(self, connection: Connection, group_id: UUID) -> None:
        await connection.execute(_SQL.bump_policies_of_group, group_id)

    async def rules(self, connection: Connection, project_id: ProjectId) -> list[PathRule]:
        return [PathRule.of_row(dict(row)) for row in await connection.fetch(_SQL.path_rules, project_id)]

    async def put_rule(self, connection: Connection, project_id: ProjectId, rule: PathRule) -> None:
        """Make it, or give the rule of that subject and pattern a new level."""
        principal_id, group_id = _columns(rule.subject_kind, rule.subject_id)
        await connection.execute(
            _SQL.put_path_rule, rule.id, project_id, principal_id, group_id, rule.pattern, str(rule.level)
        )

    async def delete_rule(
        self, connection: Connection, project_id: ProjectId, kind: SubjectKind, subject_id: UUID | None, pattern: str
    ) -> bool:
        row = await connection.fetchrow(_SQL.delete_path_rule, project_id, *_columns(kind, subject_id), pattern)
        return row is not None

    async def put_default(self, connection: Connection, project_id: ProjectId, level: Level) -> None:
        await connection.execute(_SQL.put_default_level, project_id, str(level))

    async def merge_rules(self, connection: Connection, project_id: ProjectId) -> list[tuple[str, str]]:
        """(pattern, strategy), in order."""
        return [(row["pattern"], row["strategy"]) for row in await connection.fetch(_SQL.merge_rules, project_id)]

    async def put_merge_rules(
        self, connection: Connection, project_id: ProjectId, rules: Sequence[tuple[str, str]]
    ) -> None:
        await connection.execute(_SQL.delete_merge_rules, project_id)
        await connection.execute(
            _SQL.insert_merge_rules,
            project_id,
            [pattern for pattern, _ in rules],
            [strategy for _, strategy in rules],
        )

    async def lease_rules(self, connection: Connection, project_id: ProjectId) -> list[tuple[str, bool]]:
        """(pattern, binding), in order."""
        return [(row["pattern"], row["binding"]) for row in await connection.fetch(_SQL.lease_rules, project_id)]

    async def put_lease_rules(
        self, connection: Connection, project_id: ProjectId, rules: Sequence[tuple[str, bool]]
    ) -> None:
        await connection.execute(_SQL.delete_lease_rules, project_id)
        await connection.execute(
            _SQL.insert_lease_rules,
            project_id,
            [pattern for pattern, _ in rules],
            [binding for _, binding in rules],
        )

    async def ranks(self, connection: Connection, project_id: ProjectId) -> list[tuple[PrincipalName, int]]:
        return [
            (PrincipalName(name=row["name"], kind=PrincipalKind(row["kind"])), row["rank"])
            for row in await connection.fetch(_SQL.ranks, project_id)
        ]

    async def put_rank(
        self, connection: Connection, project_id: ProjectId, principal_id: PrincipalId, rank: int
    ) -> None:
        """0, which everybody has who has no other, is not stored."""
        if rank == 0:
            await connection.execute(_SQL.delete_rank, project_id, principal_id)
        else:
            await connection.execute(_SQL.put_rank, project_id, principal_id, rank)

    async def principals(self, connection: Connection, name: PrincipalName) -> list[Principal]:
        rows = await connection.fetch(_SQL.principals_by_name, name.name, None if name.kind is None else str(name.kind))
        return [Principal.of_row(row, prefix="") for row in rows]

    async def groups_of(self, connection: Connection, principal_id: PrincipalId) -> frozenset[UUID]:
        return frozenset(row["group_id"] for row in await connection.fetch(_SQL.groups_of_principal, principal_id))

    async def group(self, connection: Connection, name: str) -> UUID | None:
        group_id: UUID | None = await connection.fetchval(_SQL.group_by_name, name)
        return group_id

    async def create_group(self, connection: Connection, name: str) -> bool:
        """False when there is one of that name."""
        return await connection.fetchval(_SQL.insert_group, new_uuid(), name) is not None

    async def groups(
        self, connection: Connection, *, after: str, limit: int
    ) -> list[tuple[str, tuple[PrincipalName, ...]]]:
        """(name, members), by name."""
        return [
            (row["name"], tuple(map(PrincipalName.parse, row["members"])))
            for row in await connection.fetch(_SQL.group_page, after, limit)
        ]

    async def add_member(self, connection: Connection, group_id: UUID, principal_id: PrincipalId) -> bool:
        return bool(await connection.fetchval(_SQL.add_member, group_id, principal_id))

    async def remove_member(self, connection: Connection, group_id: UUID, principal_id: PrincipalId) -> bool:
        return bool(await connection.fetchval(_SQL.remove_member, group_id, principal_id))


def _head(row: asyncpg.Record | None, project_id: ProjectId) -> tuple[int, Level]:
    if row is None:
        raise NotFound(f"There is no project {project_id}.")
    return row["policy_version"], Level.parse(row["default_level"])


def _columns(kind: SubjectKind, subject_id: UUID | None) -> tuple[UUID | None, UUID | None]:
    return (
        subject_id if kind is SubjectKind.PRINCIPAL else None,
        subject_id if kind is SubjectKind.GROUP else None,
    )
