"""Who may do what where, and how changes are merged. Everything here needs 'admin'."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from contextbase.identity.levels import Level, LevelDecision, PathRule
from contextbase.identity.model import Action, PrincipalName
from contextbase.identity.policies import EffectivePolicy, Subject
from contextbase.identity.roles import GIVEN, RoleBinding
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToAdminister
from contextbase.wire.people import RoleView
from contextbase.wire.policy import (
    DefaultPut,
    ExplanationView,
    LeaseRuleBody,
    LeaseRulesPut,
    MergeRuleBody,
    MergeRulesPut,
    PolicyView,
    RankPut,
    RankView,
    RulePut,
    RuleView,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/policies", tags=["policies"], responses=problem_answers(404, 409))


@router.get("")
async def show_policy(
    project_id: ProjectToAdminister, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> PolicyView:
    """All of a project's rules."""
    return _policy_view(await services.policies.show(caller, project_id))


@router.put("/rules")
async def put_rule(body: RulePut, caller: AuthenticatedCaller, services: AuthenticatedServices) -> RuleView:
    """Give a subject a level on a pattern; the rule it had there is replaced."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    rule = await services.policies.put_rule(
        caller,
        project_id,
        subject=Subject.parse(body.subject),
        pattern=body.pattern,
        level=Level.parse(body.level),
    )
    return _rule_view(rule)


@router.delete("/rules", status_code=204)
async def delete_rule(
    *,
    project_id: ProjectToAdminister,
    subject: Annotated[str, Query(max_length=120)],
    pattern: Annotated[str, Query(max_length=1024)],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> None:
    """Remove the rule of a subject on a pattern."""
    await services.policies.delete_rule(caller, project_id, subject=Subject.parse(subject), pattern=pattern)


@router.put("/default")
async def put_default(body: DefaultPut, caller: AuthenticatedCaller, services: AuthenticatedServices) -> PolicyView:
    """The level where no rule matches."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    await services.policies.put_default(caller, project_id, Level.parse(body.level))
    return _policy_view(await services.policies.show(caller, project_id))


@router.put("/merge-rules")
async def put_merge_rules(
    body: MergeRulesPut, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> PolicyView:
    """All merge rules, in order: the last that matches decides."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    rules = [(rule.pattern, rule.strategy) for rule in body.rules]
    await services.policies.put_merge_rules(caller, project_id, rules)
    return _policy_view(await services.policies.show(caller, project_id))


@router.put("/lease-rules")
async def put_lease_rules(
    body: LeaseRulesPut, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> PolicyView:
    """Where leases bind, in order: the last that matches decides."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    rules = [(rule.pattern, rule.binding) for rule in body.rules]
    await services.policies.put_lease_rules(caller, project_id, rules)
    return _policy_view(await services.policies.show(caller, project_id))


@router.put("/ranks")
async def put_rank(body: RankPut, caller: AuthenticatedCaller, services: AuthenticatedServices) -> RankView:
    """A principal's rank, for the strategy 'priority'."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    name = await services.policies.put_rank(caller, project_id, PrincipalName.parse(body.principal), body.rank)
    return RankView(principal=str(name), rank=body.rank)


@router.get("/explain")
async def explain(
    project_id: ProjectToAdminister,
    path: Annotated[str, Query(max_length=2048)],
    principal: Annotated[str, Query(max_length=120)],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> ExplanationView:
    """What a principal may do at a path, which rule decides it, and what a person's roles give in the project."""
    place = TreePath.parse(path)
    name, decision, held = await services.policies.explain(caller, project_id, place, PrincipalName.parse(principal))
    return _explanation_view(place, name, decision, held)


def _rule_view(rule: PathRule) -> RuleView:
    return RuleView.model_validate(
        {"subject": str(Subject.of_rule(rule)), "pattern": rule.pattern, "level": str(rule.level)}
    )


def _policy_view(policy: EffectivePolicy) -> PolicyView:
    return PolicyView.model_validate(
        {
            "version": policy.version,
            "default_level": str(policy.default_level),
            "rules": [_rule_view(rule) for rule in policy.rules],
            "merge_rules": [
                MergeRuleBody.model_validate({"pattern": pattern, "strategy": strategy})
                for pattern, strategy in policy.merge_rules
            ],
            "ranks": [RankView(principal=str(name), rank=rank) for name, rank in policy.ranks],
            "lease_rules": [LeaseRuleBody(pattern=pattern, binding=binding) for pattern, binding in policy.lease_rules],
        }
    )


def _explanation_view(
    path: TreePath, principal: PrincipalName, decision: LevelDecision, held: Sequence[RoleBinding]
) -> ExplanationView:
    return ExplanationView.model_validate(
        {
            "path": path,
            "principal": str(principal),
            "level": str(decision.level),
            "reason": decision.reason,
            "rule": None if decision.rule is None else _rule_view(decision.rule),
            "roles": [
                RoleView(role=one.role, scope=one.scope.kind, gives=sorted(GIVEN[one.role, one.scope.kind], key=str))
                for one in held
            ],
        }
    )
