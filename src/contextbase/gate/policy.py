"""A project's rules as one value: who may do what where, and how changes are merged."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.identity.levels import Level, PathAuthority, PathRule, SubjectKind, matches
from contextbase.identity.model import Caller, Principal
from contextbase.ids import PrincipalId, TreePath
from contextbase.merge import MergePolicy, PathMergeRule, Strategy

__all__ = ["CRITICAL", "ProjectPolicy"]

CRITICAL: Final = "critical"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectPolicy:
    version: int
    default_level: Level
    path_rules: tuple[PathRule, ...]
    merge_rules: tuple[PathMergeRule, ...]
    critical: MergePolicy  # says REVIEW for files that nobody changes without a person
    ranks: dict[PrincipalId, int]
    has_purged: bool  # contents were purged from it: not everything is taken again
    lease_rules: tuple[tuple[str, bool], ...]  # pattern, and whether leases bind there; the last that matches decides

    @classmethod
    def of_row(cls, row: asyncpg.Record) -> "ProjectPolicy":
        rules = json.loads(row["merge_rules"])
        return cls(
            version=row["policy_version"],
            default_level=Level.parse(row["default_level"]),
            path_rules=tuple(map(PathRule.of_row, json.loads(row["path_rules"]))),
            merge_rules=tuple(
                PathMergeRule(
                    pattern=rule["pattern"],
                    strategy=Strategy.REVIEW if rule["strategy"] == CRITICAL else Strategy(rule["strategy"]),
                )
                for rule in rules
            ),
            critical=MergePolicy(
                rules=tuple(
                    PathMergeRule(
                        pattern=rule["pattern"],
                        strategy=Strategy.REVIEW if rule["strategy"] == CRITICAL else Strategy.AUTO,
                    )
                    for rule in rules
                )
            ),
            ranks={PrincipalId(UUID(who)): rank for who, rank in json.loads(row["ranks"]).items()},
            has_purged=row["has_purged"],
            lease_rules=tuple((rule["pattern"], rule["binding"]) for rule in json.loads(row["lease_rules"])),
        )

    def authority(self, caller: Caller, groups: Mapping[PrincipalId, frozenset[UUID]]) -> PathAuthority:
        """`groups`: of the caller, and of whoever limits it."""
        return PathAuthority.of_caller(caller, rules=self.path_rules, groups=groups, default=self.default_level)

    def authority_of(self, principal: Principal, groups: frozenset[UUID]) -> PathAuthority:
        """By whichever token."""
        return PathAuthority.of_principal(principal, rules=self.path_rules, groups=groups, default=self.default_level)

    def leases_bind(self, path: TreePath) -> bool:
        return next((binding for pattern, binding in reversed(self.lease_rules) if matches(pattern, path)), False)

    def is_critical(self, path: TreePath) -> bool:
        return bool(self.merge_rules) and self.critical.strategy_for(path) is Strategy.REVIEW

    def merge_policy(self, writer: PrincipalId) -> MergePolicy:
        """How a writer's changes are merged with what others wrote; the rank of those comes with the head."""
        return MergePolicy(rules=self.merge_rules, theirs_rank=self.rank(writer))

    def rank(self, principal_id: PrincipalId | None) -> int:
        return 0 if principal_id is None else self.ranks.get(principal_id, 0)

    @property
    def uses_groups(self) -> bool:
        return any(rule.subject_kind is SubjectKind.GROUP for rule in self.path_rules)

    def in_groups(self, callers: Iterable[Caller]) -> frozenset[PrincipalId]:
        """Whose groups must be known to say what these callers may do."""
        if not self.uses_groups:
            return frozenset()
        return frozenset(
            principal.id for caller in callers for principal in (caller.principal, caller.limited_by) if principal
        )

    @property
    def uses_leases(self) -> bool:
        return any(binding for _, binding in self.lease_rules)

    @property
    def uses_ranks(self) -> bool:
        return any(rule.strategy is Strategy.PRIORITY for rule in self.merge_rules)
