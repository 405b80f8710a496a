"""`contextbase policy …`"""

from typing import Annotated, Final, cast, get_args

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line, print_table
from contextbase.wire.policy import LeaseRuleBody, LevelName, MergeRuleBody, PolicyView, StrategyName

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
@errors_shown
def list_(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List a project's rules."""
    with connect(data) as client:
        policy = client.policies.get(named(project))
    if as_json:
        print_json(policy)
        return
    _print(policy)


@commands.command("set")
@errors_shown
def set_(
    subject: Subject,
    pattern: Pattern,
    level: LevelText,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Give somebody a level on all paths that match a pattern. The most specific rule decides."""
    with connect(data) as client:
        rule = client.policies.set_rule(named(project), subject, pattern, _level(level))
    if as_json:
        print_json(rule)
    else:
        print_line(f"{rule.subject} now has {rule.level} on {rule.pattern}.")


@commands.command("remove")
@errors_shown
def remove(
    subject: Subject, pattern: Pattern, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """Remove a rule."""
    with connect(data) as client:
        client.policies.delete_rule(named(project), subject, pattern)
    if as_json:
        print_json({"removed": {"subject": subject, "pattern": pattern}})
    else:
        print_line(f"Removed the rule of {subject} on {pattern}.")


@commands.command("explain")
@errors_shown
def explain(
    path: Annotated[
        str,
        typer.Argument(
            help="A path in the project; it does not have to exist.", show_default=False, autocompletion=complete_path
        ),
    ],
    principal: Annotated[
        str, typer.Option("--as", metavar="PRINCIPAL", help="Whom to check, such as agent:indexer.", show_default=False)
    ],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show what somebody may do at a path, and which rule decides it."""
    with connect(data) as client:
        answer = client.policies.explain(named(project), path, principal)
    if as_json:
        print_json(answer)
        return
    print_line(f"{answer.principal} has {answer.level} on {answer.path}: {answer.reason}.")
    if answer.rule is not None:
        print_line(f"rule: {answer.rule.subject}  {answer.rule.pattern}  {answer.rule.level}")


@commands.command("default")
@errors_shown
def default(level: LevelText, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Set the level where no rule matches."""
    with connect(data) as client:
        policy = client.policies.set_default(named(project), _level(level))
    if as_json:
        print_json(policy)
    else:
        print_line(f"The level where no rule matches is now {policy.default_level}.")


@commands.command("merge")
@errors_shown
def merge(
    rules: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN=STRATEGY", help="All merge rules, in order. The last that matches decides."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all merge rules.")] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Set how files that changed on both sides are merged. Without arguments, show the rules."""
    if clear and rules:
        raise InvalidInput("Give either rules or --clear, not both.")
    with connect(data) as client:
        if rules or clear:
            policy = client.policies.set_merge_rules(named(project), [_merge_rule(rule) for rule in rules or ()])
        else:
            policy = client.policies.get(named(project))
    if as_json:
        print_json(policy.merge_rules)
        return
    _print_merge_rules(policy)


@commands.command("leases")
@errors_shown
def leases(
    rules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN=binding|advice",
            help="All lease rules, in order. The last that matches decides; without one, leases are advice.",
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all lease rules.")] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Set where leases keep others from changing files. Without arguments, show the rules."""
    if clear and rules:
        raise InvalidInput("Give either rules or --clear, not both.")
    with connect(data) as client:
        if rules or clear:
            policy = client.policies.set_lease_rules(named(project), [_lease_rule(rule) for rule in rules or ()])
        else:
            policy = client.policies.get(named(project))
    if as_json:
        print_json(policy.lease_rules)
        return
    _print_lease_rules(policy)


@commands.command("rank")
@errors_shown
def rank(
    principal: Principal,
    rank: Annotated[int, typer.Argument(help="The higher rank wins. Everybody starts with 0.", show_default=False)],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Set a principal's rank, for the merge strategy 'priority'."""
    with connect(data) as client:
        answer = client.policies.set_rank(named(project), principal, rank)
    if as_json:
        print_json(answer)
    else:
        print_line(f"{answer.principal} now has rank {answer.rank}.")


@groups.command("list")
@errors_shown
def list_groups(data: Data = None, as_json: Json = False) -> None:
    """List the groups and who is in them."""
    found, after = [], ""
    with connect(data) as client:
        while True:
            page = client.policies.list_groups(after=after, limit=1000)
            found += page.groups
            if page.next_after is None:
                break
            after = page.next_after
    if as_json:
        print_json(found)
        return
    print_table(
        ("GROUP", "MEMBERS"),
        ((group.name, ", ".join(group.members)) for group in found),
        empty="There are no groups. Create one: contextbase policy group create NAME",
    )


@groups.command("create")
@errors_shown
def create_group(name: Group, data: Data = None, as_json: Json = False) -> None:
    """Create an empty group. It can be used in the rules of every project."""
    with connect(data) as client:
        group = client.policies.create_group(name)
    if as_json:
        print_json(group)
    else:
        print_line(f"Created the group {group.name}.")


@groups.command("add")
@errors_shown
def add_member(group: Group, principal: Principal, data: Data = None, as_json: Json = False) -> None:
    """Put a principal into a group."""
    with connect(data) as client:
        membership = client.policies.add_member(group, principal)
    if as_json:
        print_json(membership)
    else:
        print_line(f"{membership.principal} is now in {membership.group}.")


@groups.command("remove")
@errors_shown
def remove_member(group: Group, principal: Principal, data: Data = None, as_json: Json = False) -> None:
    """Take a principal out of a group."""
    with connect(data) as client:
        membership = client.policies.remove_member(group, principal)
    if as_json:
        print_json(membership)
    else:
        print_line(f"{membership.principal} is no longer in {membership.group}.")


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
        _print_merge_rules(policy)
    if policy.lease_rules:
        _print_lease_rules(policy)
    for entry in policy.ranks:
        print_line(f"rank {entry.rank}  {entry.principal}")


def _print_lease_rules(policy: PolicyView) -> None:
    print_table(
        ("LEASE PATTERN", "LEASES"),
        ((rule.pattern, _BINDING if rule.binding else _ADVICE) for rule in policy.lease_rules),
        empty="There are no lease rules: leases are advice.",
    )


def _print_merge_rules(policy: PolicyView) -> None:
    print_table(
        ("MERGE PATTERN", "STRATEGY"),
        ((rule.pattern, rule.strategy) for rule in policy.merge_rules),
        empty="There are no merge rules: files are merged by their type.",
    )
