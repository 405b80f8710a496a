"""`contextbase agent-config …`, `kb …` and `manifest …`: what an app gives to agents at work."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.apps import AppArgument
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.output import print_json, print_line
from contextbase.sdk import Client
from contextbase.wire.agent_config import ConfigLayer, EffectiveConfigView
from contextbase.wire.manifest import ManifestSpelling

__all__ = ["configs", "knowledge", "manifests"]

configs = typer.Typer(help="Configure agents of an app, layer by layer.", no_args_is_help=True)
knowledge = typer.Typer(help="List and describe the knowledge bases of apps.", no_args_is_help=True)
manifests = typer.Typer(help="Publish and compare how sessions of an app are composed.", no_args_is_help=True)

LayerArgument = Annotated[
    ConfigLayer, typer.Argument(metavar="LAYER", help="app, project or user (your own).", show_default=False)
]
AppProject = Annotated[
    str | None, typer.Option("--app-project", help="A project of the app; default: default.", show_default=False)
]
JsonFile = Annotated[Path, typer.Argument(metavar="FILE", help="JSON; - for standard input.", show_default=False)]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
VersionArgument = Annotated[str, typer.Argument(metavar="VERSION", help="Such as 2026.02.11, or latest.")]
Snake = Annotated[bool, typer.Option("--snake", help="runtime_version instead of runtimeVersion.")]


@configs.command("effective")
@command
def effective(client: Client, app: AppArgument, app_project: AppProject = None) -> CommandResult:
    """Show what holds for you at work in an app, and which layer each value is from."""
    found = client.app_settings.effective(app, app_project=app_project)
    return CommandResult(found, partial(_print_effective, found))


@configs.command("show")
@command
def show_config(
    client: Client,
    app: AppArgument,
    layer: LayerArgument,
    app_project: AppProject = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many versions.")] = 1,
) -> CommandResult:
    """Show a layer, or its last versions."""
    found = client.app_settings.config(app, layer, app_project=app_project, limit=limit)
    shown = [
        {"version": each.version, "changed_by": each.changed_by, "config": _said(each.config.model_dump(mode="json"))}
        for each in found.versions
    ]
    return CommandResult(found, partial(print_json, shown))


@configs.command("set")
@command
def set_config(
    client: Client,
    app: AppArgument,
    layer: LayerArgument,
    file: JsonFile,
    app_project: AppProject = None,
    expected: Annotated[
        int | None, typer.Option("--expected", min=0, help="Fail if the last version is another.", show_default=False)
    ] = None,
) -> CommandResult:
    """Replace a layer by a new version of it."""
    stored = client.app_settings.set_config(
        app, layer, _document(file), app_project=app_project, expected_version=expected
    )
    return CommandResult(stored, f"The layer {layer} is at version {stored.version}.")


@configs.command("secrets")
@command
def list_secrets(
    client: Client, app: AppArgument, layer: LayerArgument, app_project: AppProject = None
) -> CommandResult:
    """List the names of a layer's secrets. Their values are never shown."""
    found = client.app_settings.secrets(app, layer, app_project=app_project)
    rows = [(each.name, each.key) for each in found.secrets]
    return CommandResult(found, TableRows(columns=("secret", "key"), rows=rows, empty="There are none."))


@configs.command("seal")
@command
def seal(
    client: Client, app: AppArgument, layer: LayerArgument, name: NameArgument, app_project: AppProject = None
) -> CommandResult:
    """Store a secret, read from standard input, for configurations to name."""
    value = sys.stdin.read().rstrip("\n")
    if not value:
        raise InvalidInput("The secret is empty; write it to standard input.")
    stored = client.app_settings.set_secret(app, layer, name, value, app_project=app_project)
    return CommandResult(stored, f"Stored {stored.key}.")


@configs.command("unseal")
@command
def unseal(
    client: Client, app: AppArgument, layer: LayerArgument, name: NameArgument, app_project: AppProject = None
) -> CommandResult:
    """Remove a secret."""
    client.app_settings.delete_secret(app, layer, name, app_project=app_project)
    return CommandResult({"name": name}, f"Removed {name}.")


@knowledge.command("list")
@command
def list_knowledge(
    client: Client,
    app: AppArgument,
    app_project: AppProject = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; repeat for any of several.")] = None,
) -> CommandResult:
    """List what you may look up in an app: its own, the project's and yours."""
    found = client.app_settings.knowledge_bases(app, app_project=app_project, tags=tag or ())
    rows = [(each.layer, each.name, ", ".join(each.tags), each.prefix) for each in found.knowledge_bases]
    table = TableRows(columns=("layer", "name", "tags", "files"), rows=rows, empty="There are none.")
    return CommandResult(found, table)


@knowledge.command("set")
@command
def set_knowledge(
    client: Client,
    app: AppArgument,
    layer: LayerArgument,
    name: NameArgument,
    description: Annotated[str, typer.Option(help="What is in it.", show_default=False)] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag; repeat for more.", show_default=False)] = None,
    app_project: AppProject = None,
) -> CommandResult:
    """Make a knowledge base, or change its description and tags."""
    made = client.app_settings.set_knowledge_base(
        app, layer, name, description=description, tags=tag or (), app_project=app_project
    )
    return CommandResult(made, f"Its files are below {made.prefix}")


@knowledge.command("remove")
@command
def remove_knowledge(
    client: Client, app: AppArgument, layer: LayerArgument, name: NameArgument, app_project: AppProject = None
) -> CommandResult:
    """Take a knowledge base from the list; its files stay."""
    client.app_settings.delete_knowledge_base(app, layer, name, app_project=app_project)
    return CommandResult({"name": name}, f"Removed {name}; its files stay.")


@manifests.command("list")
@command
def list_manifests(client: Client, app: AppArgument) -> CommandResult:
    """List the runtime manifests of an app, the latest first."""
    found = client.app_settings.manifests(app)
    rows = [(each.runtime_version, each.tree_seq, each.created_by, each.created_at) for each in found.manifests]
    table = TableRows(columns=("version", "snapshot", "by", "at"), rows=rows, empty="There are none.")
    return CommandResult(found, table)


@manifests.command("show")
@command
def show_manifest(
    client: Client, app: AppArgument, version: VersionArgument = "latest", snake: Snake = False
) -> CommandResult:
    """Print a manifest."""
    spelling = ManifestSpelling.SNAKE if snake else ManifestSpelling.CAMEL
    found = client.app_settings.manifest(app, version, spelling=spelling)
    return CommandResult(found, partial(print_json, found.manifest))


@manifests.command("publish")
@command
def publish(client: Client, app: AppArgument, file: JsonFile) -> CommandResult:
    """Publish how sessions are composed, from the app's files as they are now. A version never changes."""
    found = client.app_settings.publish(app, _document(file))
    return CommandResult(found, f"Published {found.runtime_version} of {app}, from snapshot {found.tree_seq}.")


@manifests.command("compare")
@command
def compare(client: Client, app: AppArgument, old: VersionArgument, new: VersionArgument = "latest") -> CommandResult:
    """Show how one manifest differs from another."""
    found = client.app_settings.compare(app, old, new)
    rows = [(each.field, json.dumps(each.old), json.dumps(each.new)) for each in found.differences]
    return CommandResult(found, TableRows(columns=("field", old, new), rows=rows, empty="They are the same."))


@manifests.command("plan")
@command
def plan(
    client: Client,
    app: AppArgument,
    version: VersionArgument = "latest",
    app_project: AppProject = None,
    session: Annotated[str, typer.Option(help="The session's name in paths.")] = "new",
) -> CommandResult:
    """Print how a session of yours would be composed."""
    found = client.app_settings.plan(app, session, version=version, app_project=app_project)
    return CommandResult(found, partial(print_json, found.plan))


def _document(file: Path) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        found = json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{file} is not a JSON object.")
    return found


def _said(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if value is not None}


def _print_effective(found: EffectiveConfigView) -> None:
    values = _said(found.config.model_dump(mode="json"))
    for dotted, layer in found.provenance.items():
        name, _, key = dotted.partition(".")
        value = values[name][key] if key else values[name]
        print_line(f"{dotted} = {json.dumps(value, ensure_ascii=False)}   ({layer})")
    if not found.provenance:
        print_line("Nothing is configured: the server's defaults hold.")
