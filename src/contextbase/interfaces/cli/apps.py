"""`contextbase app …`"""

import re
from functools import partial
from typing import Annotated, Final

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.app_example import example_config, example_files, example_manifest
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.output import print_line
from contextbase.sdk import Change, Client
from contextbase.wire.agent_config import ConfigLayer
from contextbase.wire.app import APP_NAME, AppView

__all__ = ["AppArgument", "commands"]

commands = typer.Typer(help="Register apps, and show them to people.", no_args_is_help=True)

AppArgument = Annotated[str, typer.Argument(metavar="APP", help="The app's name.", show_default=False)]
Title = Annotated[str, typer.Option(help="For people.", show_default=False)]
Description = Annotated[str, typer.Option(help="What it is for.", show_default=False)]
Icon = Annotated[str, typer.Option(help="An emoji, or data:image/png;base64,…", show_default=False)]
Texts = list[str] | None

_EMPTY: Final = "There are no apps that you may see."


@commands.command("list")
@command
def list_(client: Client) -> CommandResult:
    """List the apps that you may see, whether you may use each, and why."""
    found = client.apps.store()
    rows = [
        (app.icon if len(app.icon) < 20 else "", app.name, app.title, "yes" if app.can_use else "no", app.use_reason)
        for app in found.apps
    ]
    return CommandResult(found, TableRows(columns=("", "app", "title", "use", "why"), rows=rows, empty=_EMPTY))


@commands.command("register")
@command
def register(
    client: Client, name: AppArgument, title: Title = "", description: Description = "", icon: Icon = ""
) -> CommandResult:
    """Make an app with a tree of its own, the project app-APP."""
    _check_name(name, "register")
    made = client.apps.register(name, title=title, description=description, icon=icon)
    return CommandResult(made, f"Registered {made.name}. Its files are in the project app-{made.name}.")


@commands.command("init")
@command
def init(client: Client, name: AppArgument, title: Title = "") -> CommandResult:
    """Make a working example app: a template, a knowledge base, a manifest; shown to everybody who is a member."""
    _check_name(name, "init")
    made = client.apps.register(name, title=title, description="An example to start from.", icon="🧩")
    changes = [Change(action="write", path=path, text=text) for path, text in example_files().items()]
    client.commit(f"app-{name}", changes, base_seq=0, message=f"Begin the app {name}")
    client.app_settings.set_knowledge_base(
        name, ConfigLayer.APP, "handbook", description="How we work.", tags=["example"]
    )
    client.app_settings.publish(name, example_manifest(name))
    client.app_settings.set_config(name, ConfigLayer.APP, example_config(title or name))
    shown = client.apps.set_visibility(name, roles=["member"])
    return CommandResult(shown, f"Made the app {made.name}. Try it: contextbase chat --app {made.name}")


@commands.command("show")
@command
def show(client: Client, name: AppArgument) -> CommandResult:
    """Show an app; to whom it is shown, if you manage it."""
    found = client.apps.get(name)
    return CommandResult(found, partial(_print_app, found))


@commands.command("set")
@command
def change(
    client: Client,
    name: AppArgument,
    title: Annotated[str | None, typer.Option(help="For people.", show_default=False)] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.", show_default=False)] = None,
    icon: Annotated[str | None, typer.Option(help="An emoji, or a picture as data:.", show_default=False)] = None,
    owner: Annotated[str | None, typer.Option(help="Such as user:ann.", show_default=False)] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Whether it can be used.", show_default=False)
    ] = None,
) -> CommandResult:
    """Describe an app, enable or disable it, give it another owner."""
    changed = client.apps.change(name, title=title, description=description, icon=icon, enabled=enabled, owner=owner)
    return CommandResult(changed, partial(_print_app, changed))


@commands.command("visibility")
@command
def visibility(
    client: Client,
    name: AppArgument,
    department: Annotated[Texts, typer.Option(help="A department; repeat for more.", show_default=False)] = None,
    role: Annotated[Texts, typer.Option(help="A role; repeat for more.", show_default=False)] = None,
    member: Annotated[Texts, typer.Option(help="Such as user:ann; repeat for more.", show_default=False)] = None,
) -> CommandResult:
    """Show an app to these departments, roles and users, and to nobody else."""
    shown = client.apps.set_visibility(name, departments=department or (), roles=role or (), members=member or ())
    return CommandResult(shown, partial(_print_app, shown))


@commands.command("project")
@command
def project(
    client: Client,
    name: AppArgument,
    add: Annotated[str | None, typer.Option(metavar="NAME", help="Give it this project.", show_default=False)] = None,
    description: Description = "",
) -> CommandResult:
    """List the projects of an app, beside `default`, or add one."""
    if add is not None:
        client.apps.set_project(name, add, description)
    found = client.apps.projects(name)
    rows = [(each.name, each.description) for each in found.projects]
    table = TableRows(columns=("project", "description"), rows=rows, empty="It has the project default alone.")
    return CommandResult(found, table)


def _print_app(app: AppView) -> None:
    print_line(f"{app.name}: {app.title}")
    if app.description:
        print_line(app.description)
    print_line(f"owner {app.owner}, {'enabled' if app.enabled else 'disabled'}, files in the project app-{app.name}")
    if app.visibility is not None:
        shown = app.visibility
        people = [f"department {each}" for each in shown.departments] + [f"role {each}" for each in shown.roles]
        print_line("shown to " + (", ".join([*people, *shown.members]) or "those who manage it"))


def _check_name(name: str, verb: str) -> None:
    """Other programs make things in a folder; whoever gives one here is told what to type."""
    if re.fullmatch(APP_NAME, name):
        return
    last = name.rstrip("/").rpartition("/")[2].lower()
    wanted = re.sub(r"[^a-z0-9._-]+", "-", last).strip("._-")[:50] or "my-app"
    raise InvalidInput(
        f"'{name[:200]}' cannot be the name of an app: it has 1 to 50 of a-z, 0-9 and ._- and starts with a letter or "
        f"digit. An app is made on the server, not in a folder. Try: contextbase app {verb} {wanted}"
    )
