"""A project's policies, as a part of the clients: `client.policies`."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from contextbase.errors import InvalidInput
from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.wire.policy import (
    DefaultPut,
    ExplanationView,
    GroupCreate,
    GroupPage,
    GroupView,
    LeaseRuleBody,
    LeaseRulesPut,
    LevelName,
    MembershipView,
    MergeRuleBody,
    MergeRulesPut,
    PolicyView,
    RankPut,
    RankView,
    RulePut,
    RuleView,
)

__all__ = ["AsyncPolicies", "Policies"]

_POLICIES: Final = "/api/v1/collab/policies"


class AsyncPolicies:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def show(self, project: str) -> PolicyView:
        return await self._connection.call(PolicyView, "GET", _POLICIES, project=project)

    async def put_rule(self, project: str, subject: str, pattern: str, level: LevelName) -> RuleView:
        """Give a subject (`agent:NAME`, `group:NAME`, `everyone`) a level on a pattern."""
        body = RulePut(project=project, subject=subject, pattern=pattern, level=level)
        return await self._connection.call(RuleView, "PUT", f"{_POLICIES}/rules", body)

    async def delete_rule(self, project: str, subject: str, pattern: str) -> None:
        await self._connection.done("DELETE", f"{_POLICIES}/rules", project=project, subject=subject, pattern=pattern)

    async def put_default(self, project: str, level: LevelName) -> PolicyView:
        """The level where no rule matches."""
        body = DefaultPut(project=project, level=level)
        return await self._connection.call(PolicyView, "PUT", f"{_POLICIES}/default", body)

    async def put_merge_rules(self, project: str, rules: Sequence[MergeRuleBody]) -> PolicyView:
        """All merge rules, in order: the last that matches decides."""
        body = MergeRulesPut(project=project, rules=list(rules))
        return await self._connection.call(PolicyView, "PUT", f"{_POLICIES}/merge", body)

    async def put_lease_rules(self, project: str, rules: Sequence[LeaseRuleBody]) -> PolicyView:
        """Where leases bind, in order: the last that matches decides."""
        body = LeaseRulesPut(project=project, rules=list(rules))
        return await self._connection.call(PolicyView, "PUT", f"{_POLICIES}/leases", body)

    async def put_rank(self, project: str, principal: str, rank: int) -> RankView:
        """For the strategy 'priority'."""
        body = RankPut(project=project, principal=principal, rank=rank)
        return await self._connection.call(RankView, "PUT", f"{_POLICIES}/ranks", body)

    async def explain(self, project: str, path: str, principal: str) -> ExplanationView:
        """What a principal may do at a path, and which rule decides it."""
        return await self._connection.call(
            ExplanationView, "GET", f"{_POLICIES}/explain", project=project, path=path, principal=principal
        )

    async def groups(self, *, after: str = "", limit: int = 100) -> GroupPage:
        return await self._connection.call(GroupPage, "GET", f"{_POLICIES}/groups", after=after, limit=limit)

    async def create_group(self, name: str) -> GroupView:
        return await self._connection.call(GroupView, "POST", f"{_POLICIES}/groups", GroupCreate(name=name))

    async def add_member(self, group: str, principal: str) -> MembershipView:
        return await self._connection.call(MembershipView, "PUT", _member(group, principal))

    async def remove_member(self, group: str, principal: str) -> MembershipView:
        return await self._connection.call(MembershipView, "DELETE", _member(group, principal))


class Policies:
    """`AsyncPolicies` for code that is not async."""

    def __init__(self, policies: AsyncPolicies, portal: Portal) -> None:
        self._policies = policies
        self._portal = portal

    def show(self, project: str) -> PolicyView:
        return self._portal.run(self._policies.show(project))

    def put_rule(self, project: str, subject: str, pattern: str, level: LevelName) -> RuleView:
        return self._portal.run(self._policies.put_rule(project, subject, pattern, level))

    def delete_rule(self, project: str, subject: str, pattern: str) -> None:
        self._portal.run(self._policies.delete_rule(project, subject, pattern))

    def put_default(self, project: str, level: LevelName) -> PolicyView:
        return self._portal.run(self._policies.put_default(project, level))

    def put_merge_rules(self, project: str, rules: Sequence[MergeRuleBody]) -> PolicyView:
        return self._portal.run(self._policies.put_merge_rules(project, rules))

    def put_lease_rules(self, project: str, rules: Sequence[LeaseRuleBody]) -> PolicyView:
        return self._portal.run(self._policies.put_lease_rules(project, rules))

    def put_rank(self, project: str, principal: str, rank: int) -> RankView:
        return self._portal.run(self._policies.put_rank(project, principal, rank))

    def explain(self, project: str, path: str, principal: str) -> ExplanationView:
        return self._portal.run(self._policies.explain(project, path, principal))

    def groups(self, *, after: str = "", limit: int = 100) -> GroupPage:
        return self._portal.run(self._policies.groups(after=after, limit=limit))

    def create_group(self, name: str) -> GroupView:
        return self._portal.run(self._policies.create_group(name))

    def add_member(self, group: str, principal: str) -> MembershipView:
        return self._portal.run(self._policies.add_member(group, principal))

    def remove_member(self, group: str, principal: str) -> MembershipView:
        return self._portal.run(self._policies.remove_member(group, principal))


def _member(group: str, principal: str) -> str:
    for name in (group, principal):
        if not name or name in (".", "..") or "/" in name:
            raise InvalidInput(f"{name[:120]!r} is not the name of a group or principal.")
    return f"{_POLICIES}/groups/{quote(group, safe='')}/members/{quote(principal, safe=':')}"
