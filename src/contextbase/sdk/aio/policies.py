"""A project's policies, as a part of the clients: `client.policies`."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from contextbase.errors import InvalidInput
from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.arguments import checked
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

__all__ = ["AsyncPolicies"]

_POLICIES: Final = "/api/v1/policies"
_GROUPS: Final = "/api/v1/groups"


class AsyncPolicies:
    """Who may do what where, and how changes are merged. Changing anything needs a token that allows 'admin'."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def get(self, project: str) -> PolicyView:
        """All rules, the default level, merge and lease rules, and ranks of a project."""
        return await self._connection.read(PolicyView, _POLICIES, project=project)

    @checked
    async def set_rule(self, project: str, subject: str, pattern: str, level: LevelName) -> RuleView:
        """Give a subject (`agent:NAME`, `group:NAME`, `everyone`) a level on a pattern, in place of the one it has."""
        body = RulePut(project=project, subject=subject, pattern=pattern, level=level)
        return await self._connection.call(RuleView, "PUT", f"{_POLICIES}/rules", body)

    @checked
    async def delete_rule(self, project: str, subject: str, pattern: str) -> None:
        """Remove a rule. Raises `NotFound` if there is none."""
        await self._connection.done("DELETE", f"{_POLICIES}/rules", project=project, subject=subject, pattern=pattern)

    @checked
    async def set_default(self, project: str, level: LevelName) -> PolicyView:
        """Set the level where no rule matches."""
        body = DefaultPut(project=project, level=level)
        return await self._connection.call(PolicyView, "PUT", f"{_POLICIES}/default", body)

    @checked
    async def set_merge_rules(self, project: str, rules: Sequence[MergeRuleBody]) -> PolicyView:
        """Replace all merge rules, in order: the last that matches decides."""
        body = MergeRulesPut(project=project, rules=list(rules))
        return await self._connection.call(PolicyView, "PUT", f"{_POLICIES}/merge-rules", body)

    @checked
    async def set_lease_rules(self, project: str, rules: Sequence[LeaseRuleBody]) -> PolicyView:
        """Replace all rules on where leases bind, in order: the last that matches decides."""
        body = LeaseRulesPut(project=project, rules=list(rules))
        return await self._connection.call(PolicyView, "PUT", f"{_POLICIES}/lease-rules", body)

    @checked
    async def set_rank(self, project: str, principal: str, rank: int) -> RankView:
        """Set a principal's rank, for the merge strategy 'priority': the higher rank wins."""
        body = RankPut(project=project, principal=principal, rank=rank)
        return await self._connection.call(RankView, "PUT", f"{_POLICIES}/ranks", body)

    @checked
    async def explain(self, project: str, path: str, principal: str) -> ExplanationView:
        """What a principal may do at a path, and which rule decides it."""
        return await self._connection.read(
            ExplanationView, f"{_POLICIES}/explain", project=project, path=path, principal=principal
        )

    @checked
    async def list_groups(self, *, after: str = "", limit: int = 100) -> GroupPage:
        """The groups and who is in them, by name. Pass the page's `next_after` as `after` for the next page."""
        return await self._connection.read(GroupPage, _GROUPS, after=after, limit=limit)

    @checked
    async def create_group(self, name: str) -> GroupView:
        """Create an empty group, for rules of any project. Raises `Conflict` if the name is taken."""
        return await self._connection.call(GroupView, "POST", _GROUPS, GroupCreate(name=name))

    @checked
    async def add_member(self, group: str, principal: str) -> MembershipView:
        """Put a principal into a group; one who is in it stays. Raises `NotFound` if either does not exist."""
        return await self._connection.call(MembershipView, "PUT", _member(group, principal))

    @checked
    async def remove_member(self, group: str, principal: str) -> MembershipView:
        """Take a principal out of a group. Raises `NotFound` if either does not exist."""
        return await self._connection.call(MembershipView, "DELETE", _member(group, principal))


def _member(group: str, principal: str) -> str:
    for name in (group, principal):
        if not name or name in (".", "..") or "/" in name:
            raise InvalidInput(f"{name[:120]!r} is not the name of a group or principal.")
    return f"{_GROUPS}/{quote(group, safe='')}/members/{quote(principal, safe=':')}"
