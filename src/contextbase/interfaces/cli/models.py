"""`contextbase model …`"""

import sys
from datetime import datetime
from functools import partial
from typing import Annotated, Final

import typer

from contextbase.agent_vocabulary import UsageGroup
from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.completion import complete_project
from contextbase.interfaces.cli.output import print_line, print_table
from contextbase.sdk import Client
from contextbase.vocabulary import BudgetScope, ModelProtocol, ModelRole, UpstreamScope
from contextbase.wire.model import (
    ModelBudgetView,
    ModelList,
    ModelPrices,
    UpstreamList,
    UpstreamTested,
    UsageRowView,
)

__all__ = ["commands"]

commands = typer.Typer(help="Choose which models agents use, and what they may cost.", no_args_is_help=True)

_MICRO: Final = 1_000_000
_NONE: Final = "There are no model services: the built-in demonstration model answers."

Protocol = Annotated[ModelProtocol, typer.Option(help="Whose API it speaks.", show_default=False)]
UpstreamArgument = Annotated[str, typer.Argument(metavar="NAME", help="The service's name.", show_default=False)]


@commands.command("list")
@command
def list_(client: Client) -> CommandResult:
    """List the model services that you may manage, and the models that agents may ask for."""
    upstreams, models = client.models.upstreams(), client.models.list()
    answer = {"upstreams": upstreams.upstreams, "models": models.models}
    return CommandResult(answer, partial(_print_all, upstreams, models))


@commands.command("connect")
@command
def connect(
    client: Client,
    name: UpstreamArgument,
    protocol: Protocol,
    url: Annotated[str, typer.Option(help="Base URL, such as https://api.anthropic.com.", show_default=False)],
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", help="Only for this project.", show_default=False, autocompletion=complete_project
        ),
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only for you.")] = False,
    no_key: Annotated[bool, typer.Option("--no-key", help="It needs no key.")] = False,
    key_stdin: Annotated[
        bool, typer.Option("--key-stdin", help="Read the key from standard input; else it is asked for.")
    ] = False,
) -> CommandResult:
    """Add a model service. Its key is stored sealed on the server; agents never see it."""
    if mine and project:
        raise InvalidInput("Say --project or --mine, not both.")
    scope = UpstreamScope.USER if mine else UpstreamScope.PROJECT if project else UpstreamScope.PLATFORM
    key = "" if no_key else _key(from_input=key_stdin)
    added = client.models.connect(name, protocol=protocol, url=url, key=key, scope=scope, project=project)
    return CommandResult(added, f"Added {added.name} ({added.url}). Try it: contextbase model test {added.name}")


@commands.command("disconnect")
@command
def disconnect(client: Client, name: UpstreamArgument) -> CommandResult:
    """Remove a model service, and its key with it."""
    return CommandResult(client.models.disconnect(name), f"Removed {name}.")


@commands.command("test")
@command
def check(
    client: Client,
    name: Annotated[str | None, typer.Argument(help="The service's name. Default: all.", show_default=False)] = None,
) -> CommandResult:
    """Check that model services answer and take their keys. It costs nothing."""
    names = [name] if name else [each.name for each in client.models.upstreams().upstreams]
    results = [client.models.test(each) for each in names]
    return CommandResult(results, partial(_print_tests, results), is_failure=not all(each.is_well for each in results))


@commands.command("add")
@command
def add(
    client: Client,
    name: Annotated[str, typer.Argument(metavar="MODEL", help="As the service calls it.", show_default=False)],
    protocol: Protocol,
    role: Annotated[ModelRole, typer.Option(help="For the work itself, or for small questions.")] = ModelRole.MAIN,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="IN,OUT[,READ,WRITE]",
            help="Dollars for a million tokens: input, output, cache read, cache write. Default: built-in prices.",
            show_default=False,
        ),
    ] = None,
) -> CommandResult:
    """Allow a model, or change its role and prices. Once a model is listed, only listed ones may be used."""
    given = None if prices is None else _prices(prices)
    model = client.models.allow(name, protocol=protocol, role=role, prices=given)
    return CommandResult(model, f"Agents may use {model.name} as {model.role}.")


@commands.command("remove")
@command
def remove(
    client: Client, name: Annotated[str, typer.Argument(metavar="MODEL", help="The model.", show_default=False)]
) -> CommandResult:
    """Take a model from the list."""
    return CommandResult(client.models.forbid(name), f"Removed {name} from the list.")


@commands.command("budget")
@command
def budget(
    client: Client,
    user: Annotated[str | None, typer.Option(help="Whose, such as ann.", show_default=False)] = None,
    project: Annotated[
        str | None,
        typer.Option("--project", "-p", help="Of this project.", show_default=False, autocompletion=complete_project),
    ] = None,
    monthly: Annotated[
        float | None, typer.Option(help="Dollars in a calendar month (UTC).", show_default=False)
    ] = None,
    unlimited: Annotated[bool, typer.Option("--unlimited", help="Remove the limit.")] = False,
) -> CommandResult:
    """Show budgets, or limit what a user or a project may spend on models in a month."""
    if user is None and project is None:
        if monthly is not None or unlimited:
            raise InvalidInput("Say whose budget: --user or --project.")
        budgets = client.models.budgets()
    else:
        if (user is not None and project is not None) or (monthly is None) == (not unlimited):
            raise InvalidInput("Say --user or --project, and --monthly or --unlimited.")
        scope = BudgetScope.PROJECT if user is None else BudgetScope.USER
        limit = None if monthly is None else round(monthly * _MICRO)
        budgets = client.models.set_budget(scope, user or project or "", limit)
    return CommandResult(budgets.budgets, partial(_print_budgets, budgets.budgets))


@commands.command("usage")
@command
def usage(
    client: Client,
    by: Annotated[UsageGroup, typer.Option(help="What to add up by.")] = UsageGroup.PERSON,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="The first day (UTC); default: the first of this month.", show_default=False
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The last day (UTC); default: today.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Show at most this many rows.")] = 100,
) -> CommandResult:
    """Show the tokens and the cost of what agents asked models, by person, project, model or day."""
    first, last = (None if day is None else day.date() for day in (since, until))
    table = client.models.usage(by, since=first, until=last, limit=limit)
    return CommandResult(table.rows, partial(_print_usage, table.by, table.rows))


def _key(*, from_input: bool) -> str:
    if from_input:
        return sys.stdin.readline().strip()
    if not sys.stdin.isatty():
        raise InvalidInput("The key is asked for on a terminal; elsewhere pipe it in with --key-stdin.")
    return str(typer.prompt("Key", hide_input=True)).strip()


def _prices(text: str) -> ModelPrices:
    try:
        parts = [round(float(part) * _MICRO) for part in text.split(",")]
    except ValueError:
        parts = []
    if len(parts) not in (2, 4):
        raise InvalidInput(f"{text[:100]!r} is not two or four prices, such as 3,15 or 3,15,0.3,3.75.")
    given, output, cache_read, cache_write = (*parts, *parts[:1] * 2) if len(parts) == 2 else parts
    return ModelPrices(input=given, output=output, cache_read=cache_read, cache_write=cache_write)


def _print_all(upstreams: UpstreamList, models: ModelList) -> None:
    print_table(
        ("SERVICE", "SPEAKS", "URL", "FOR", "KEY"),
        (
            (each.name, each.protocol, each.url, each.subject or "everybody", "sealed" if each.has_key else "none")
            for each in upstreams.upstreams
        ),
        empty=f"{_NONE} Add one: contextbase model connect",
    )
    print_table(
        ("MODEL", "SPEAKS", "ROLE", "DOLLARS FOR A MILLION (IN, OUT, CACHE READ, WRITE)"),
        ((each.name, each.protocol, each.role, _shown(each.prices)) for each in models.models),
        empty="No model is listed: those with a built-in price may be used.",
    )


def _shown(prices: ModelPrices | None) -> str:
    if prices is None:
        return "built-in"
    parts = (prices.input, prices.output, prices.cache_read, prices.cache_write)
    return ", ".join(f"{part / _MICRO:g}" for part in parts)


def _print_tests(results: list[UpstreamTested]) -> None:
    for each in results:
        print_line(each.message)
    if not results:
        print_line(_NONE)


def _print_budgets(budgets: list[ModelBudgetView]) -> None:
    print_table(
        ("BUDGET OF", "DOLLARS A MONTH", "SPENT", "RESERVED"),
        (
            (each.subject, *(f"{part / _MICRO:.2f}" for part in (each.monthly_limit, each.spent, each.reserved)))
            for each in budgets
        ),
        empty="There are no budgets.",
    )


def _print_usage(by: UsageGroup, rows: list[UsageRowView]) -> None:
    print_table(
        (by.upper(), "REQUESTS", "TOKENS IN", "OUT", "CACHE READ", "CACHE WRITE", "DOLLARS"),
        (
            (
                each.subject,
                *(f"{part:,}" for part in (each.requests, each.input, each.output, each.cache_read, each.cache_write)),
                f"{each.cost / _MICRO:.4f}",
            )
            for each in rows
        ),
        empty="No agent asked a model in these days.",
    )
