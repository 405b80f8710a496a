"""`contextbase policy …`"""

from functools import partial
from typing import Annotated, Final, cast, get_args

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.output import print_line, print_table
from contextbase.sdk import Client
from contextbase.wire.policy import (
    ExplanationView,
    GroupView,
    LeaseRuleBody,
    LevelName,
    MergeRuleBody,
    PolicyView,
    StrategyName,
)

__all__ = ["commands"]

commands = typer.Typer(help="Control who may do what where, and how changes are merged.", no_args_is_help=True)
groups = typer.Typer(help="Manage groups of principals, for use in rules.", no_args_is_help=True)
commands.add_typer(groups, name="group")

_BINDING: Final = "binding"
_ADVICE: Final = "advice"

Subject = Annotated[
    str, typer.Argument(help="agent:NAME, user:NAME, adapter:NAME, group:NAME or everyone.", show_default=False)
]
Pattern = Annotated[
    str,
    typer.Argument(
        help="A pattern such as docs/** (`*` matches within a part of a path, `**` across parts).", show_default=False
    ),
]
LevelText = Annotated[str, typer.Argument(metavar="LEVEL", help="hidden, R, RA, RW- or RW.", show_default=False)]
Principal = Annotated[str, typer.Argument(help="A principal such as agent:indexer.", show_default=False)]
Group = Annotated[str, typer.Argument(help="The group's name.", show_default=False)]


@commands.command("list")
@command
def list_(client: Client, *, project: NamedProject) -> CommandResult:
    """List a project's rules."""
    policy = client.policies.get(project)
    return CommandResult(policy, partial(_print, policy))


@commands.command("set")
@command
def set_(
    client: Client, subject: Subject, pattern: Pattern, level: LevelText, *, project: NamedProject
) -> CommandResult:
    """Give somebody a level on all paths that match a pattern. The most specific rule decides."""
    rule = client.policies.set_rule(project, subject, pattern, _level(level))
    return CommandResult(rule, f"{rule.subject} now has {rule.level} on {rule.pattern}.")


@commands.command("remove")
@command
def remove(client: Client, subject: Subject, pattern: Pattern, *, project: NamedProject) -> CommandResult:
    """Remove a rule."""
    client.policies.delete_rule(project, subject, pattern)
    removed = {"removed": {"subject": subject, "pattern": pattern}}
    return CommandResult(removed, f"Removed the rule of {subject} on {pattern}.")


@commands.command("explain")
@command
def explain(
    client: Client,
    path: Annotated[
        str,
        typer.Argument(
            help="A path in the project; it does not have to exist.", show_default=False, autocompletion=complete_path
        ),
    ],
    principal: Annotated[
        str, typer.Option("--as", metavar="PRINCIPAL", help="Whom to check, such as agent:indexer.", show_default=False)
    ],
    *,
    project: NamedProject,
) -> CommandResult:
    """Show what somebody may do at a path, and which rule decides it."""
    answer = client.policies.explain(project, path, principal)
    return CommandResult(answer, partial(_print_explanation, answer))


@commands.command("default")
@command
def default(client: Client, level: LevelText, *, project: NamedProject) -> CommandResult:
    """Set the level where no rule matches."""
    policy = client.policies.set_default(project, _level(level))
    return CommandResult(policy, f"The level where no rule matches is now {policy.default_level}.")


@commands.command("merge")
@command
def merge(
    client: Client,
    rules: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN=STRATEGY", help="All merge rules, in order. The last that matches decides."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all merge rules.")] = False,
    *,
    project: NamedProject,
) -> CommandResult:
    """Set how files that changed on both sides are merged. Without arguments, show the rules."""
    if clear and rules:
        raise InvalidInput("Give either rules or --clear, not both.")
    if rules or clear:
        policy = client.policies.set_merge_rules(project, [_merge_rule(rule) for rule in rules or ()])
    else:
        policy = client.policies.get(project)
    return CommandResult(policy.merge_rules, _merge_rules(policy))


@commands.command("leases")
@command
def leases(
    client: Client,
    rules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN=binding|advice",
            help="All lease rules, in order. The last that matches decides; without one, leases are advice.",
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all lease rules.")] = False,
    *,
    project: NamedProject,
) -> CommandResult:
    """Set where leases keep others from changing files. Without arguments, show the rules."""
    if clear and rules:
        raise InvalidInput("Give either rules or --clear, not both.")
    if rules or clear:
        policy = client.policies.set_lease_rules(project, [_lease_rule(rule) for rule in rules or ()])
    else:
        policy = client.policies.get(project)
    return CommandResult(policy.lease_rules, _lease_rules(policy))


@commands.command("rank")
@command
def rank(
    client: Client,
    principal: Principal,
    rank: Annotated[int, typer.Argument(help="The higher rank wins. Everybody starts with 0.", show_default=False)],
    *,
    project: NamedProject,
) -> CommandResult:
    """Set a principal's rank, for the merge strategy 'priority'."""
    answer = client.policies.set_rank(project, principal, rank)
    return CommandResult(answer, f"{answer.principal} now has rank {answer.rank}.")


@groups.command("list")
@command
def list_groups(client: Client) -> CommandResult:
    """List the groups and who is in them."""
    found: list[GroupView] = []
    after: str | None = ""
    while after is not None:
        page = client.policies.list_groups(after=after, limit=1000)
        found += page.groups
        after = page.next_after
    rows = TableRows(
        columns=("GROUP", "MEMBERS"),
        rows=((group.name, ", ".join(group.members)) for group in found),
        empty="There are no groups. Create one: contextbase policy group create NAME",
    )
    return CommandResult(found, rows)


@groups.command("create")
@command
def create_group(client: Client, name: Group) -> CommandResult:
    """Create an empty group. It can be used in the rules of every project."""
    group = client.policies.create_group(name)
    return CommandResult(group, f"Created the group {group.name}.")


@groups.command("add")
@command
def add_member(client: Client, group: Group, principal: Principal) -> CommandResult:
    """Put a principal into a group."""
    membership = client.policies.add_member(group, principal)
    return CommandResult(membership, f"{membership.principal} is now in {membership.group}.")


@groups.command("remove")
@command
def remove_member(client: Client, group: Group, principal: Principal) -> CommandResult:
    """Take a principal out of a group."""
    membership = client.policies.remove_member(group, principal)
    return CommandResult(membership, f"{membership.principal} is no longer in {membership.group}.")


def _level(text: str) -> LevelName:
    if text not in get_args(LevelName):
        raise InvalidInput(f"{text[:40]!r} is not a level: {', '.join(get_args(LevelName))}.")
    return cast("LevelName", text)


def _merge_rule(text: str) -> MergeRuleBody:
    pattern, equals, strategy = text.rpartition("=")
    if not equals or strategy not in get_args(StrategyName):
        raise InvalidInput(f"{text[:120]!r} is not PATTERN=STRATEGY with one of {', '.join(get_args(StrategyName))}.")
    return MergeRuleBody(pattern=pattern, strategy=cast("StrategyName", strategy))


def _lease_rule(text: str) -> LeaseRuleBody:
    pattern, equals, meaning = text.rpartition("=")
    if not equals or meaning not in (_BINDING, _ADVICE):
        raise InvalidInput(f"{text[:120]!r} is not PATTERN={_BINDING} or PATTERN={_ADVICE}.")
    return LeaseRuleBody(pattern=pattern, binding=meaning == _BINDING)


def _print(policy: PolicyView) -> None:
    print_table(
        ("SUBJECT", "PATTERN", "LEVEL"),
        ((rule.subject, rule.pattern, rule.level) for rule in policy.rules),
        empty="There are no rules.",
    )
    print_line(f"Where no rule matches: {policy.default_level}. The owner may do everything.")
    if policy.merge_rules:
        _merge_rules(policy).print()
    if policy.lease_rules:
        _lease_rules(policy).print()
    for entry in policy.ranks:
        print_line(f"rank {entry.rank}  {entry.principal}")


def _print_explanation(answer: ExplanationView) -> None:
    print_line(f"{answer.principal} has {answer.level} on {answer.path}: {answer.reason}.")
    if answer.rule is not None:
        print_line(f"rule: {answer.rule.subject}  {answer.rule.pattern}  {answer.rule.level}")
    for held in answer.roles:
        print_line(f"role: {held.role} in {held.scope}  gives {' '.join(held.gives)}")


def _lease_rules(policy: PolicyView) -> TableRows:
    return TableRows(
        columns=("LEASE PATTERN", "LEASES"),
        rows=((rule.pattern, _BINDING if rule.binding else _ADVICE) for rule in policy.lease_rules),
        empty="There are no lease rules: leases are advice.",
    )


def _merge_rules(policy: PolicyView) -> TableRows:
    return TableRows(
        columns=("MERGE PATTERN", "STRATEGY"),
        rows=((rule.pattern, rule.strategy) for rule in policy.merge_rules),
        empty="There are no merge rules: files are merged by their type.",
    )
