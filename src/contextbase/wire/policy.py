"""Bodies about policies."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from contextbase.wire.commit import ProjectName
from contextbase.wire.people import RoleView

__all__ = [
    "DefaultPut",
    "ExplanationView",
    "GroupCreate",
    "GroupPage",
    "GroupView",
    "LeaseRuleBody",
    "LeaseRulesPut",
    "LevelName",
    "MembershipView",
    "MergeRuleBody",
    "MergeRulesPut",
    "PolicyView",
    "RankPut",
    "RankView",
    "RulePut",
    "RuleView",
    "StrategyName",
]

LevelName = Literal["hidden", "R", "RA", "RW-", "RW"]
StrategyName = Literal["auto", "review", "critical", "last-writer", "priority", "union", "crdt", "ours", "theirs"]
SubjectName = Annotated[str, Field(description="agent:NAME, user:NAME, group:NAME or everyone.", max_length=120)]
Pattern = Annotated[str, Field(description="`*` within a part of a path, `**` across parts.", max_length=1024)]


class RuleView(BaseModel):
    subject: str
    pattern: str
    level: LevelName


class MergeRuleBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pattern: Pattern
    strategy: StrategyName


class LeaseRuleBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pattern: Pattern
    binding: bool = Field(description="Whether a lease keeps everybody else from changing what it is about.")


class RankView(BaseModel):
    principal: str
    rank: int


class PolicyView(BaseModel):
    version: int = Field(description="Renewed by every change.")
    default_level: LevelName = Field(description="Where no rule matches.")
    rules: list[RuleView] = Field(description="The most specific that matches decides.")
    merge_rules: list[MergeRuleBody] = Field(description="The last that matches decides.")
    ranks: list[RankView]
    lease_rules: list[LeaseRuleBody] = Field(
        description="Where leases bind: the last that matches decides. Elsewhere they advise."
    )


class RulePut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    subject: SubjectName
    pattern: Pattern
    level: LevelName


class DefaultPut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    level: LevelName


class MergeRulesPut(BaseModel):
    """All merge rules, in order; those there were are replaced."""

    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    rules: list[MergeRuleBody] = Field(max_length=1000)


class LeaseRulesPut(BaseModel):
    """All lease rules, in order; those there were are replaced."""

    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    rules: list[LeaseRuleBody] = Field(max_length=1000)


class RankPut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    principal: str = Field(description="Such as agent:indexer.", max_length=120)
    rank: int = Field(ge=-1_000_000, le=1_000_000, description="0: as everybody.")


class ExplanationView(BaseModel):
    path: str
    principal: str
    level: LevelName
    reason: str = Field(description="What decided it.")
    rule: RuleView | None
    roles: list[RoleView] = Field(description="Of a person: the roles held here, and what each gives.")


class GroupCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=100)


class GroupView(BaseModel):
    name: str
    members: list[str]


class GroupPage(BaseModel):
    groups: list[GroupView]
    next_after: str | None = Field(description="Pass as `after` for the next page; null on the last.")


class MembershipView(BaseModel):
    group: str
    principal: str
    member: bool
