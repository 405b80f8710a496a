"""`contextbase project …`"""

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from rich.filesize import decimal
from rich.markup import escape

from contextbase.errors import InvalidInput, NotFound
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.completion import complete_project
from contextbase.interfaces.cli.identifiers import find_id
from contextbase.interfaces.cli.options import Yes
from contextbase.interfaces.cli.output import console
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.sdk import Client
from contextbase.wire.project import ProjectDetail, ProjectView

__all__ = ["commands"]

commands = typer.Typer(help="Create, list, show, change and delete projects.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(
        help="The project's name or id (or the start or end of the id).",
        show_default=False,
        autocompletion=complete_project,
    ),
]


@commands.command("create")
@command
def create(
    client: Client,
    name: Annotated[
        str,
        typer.Argument(
            help="The name: a-z, 0-9, dots, dashes and underscores; at most 100 characters.", show_default=False
        ),
    ],
    description: Annotated[str, typer.Option(help="A description for the list of projects.")] = "",
) -> CommandResult:
    """Create an empty project."""
    project = client.projects.create(name, description=description)
    return CommandResult(project, f"Created project {project.name} ({project.id}).")


@commands.command("list")
@command
def list_(client: Client) -> CommandResult:
    """List the projects you may read."""
    projects = list(_listed(client))
    rows = TableRows(
        columns=("NAME", "HEAD", "CREATED", "DESCRIPTION"),
        rows=((p.name, p.head, local_time(p.created_at), p.description) for p in projects),
        empty="There are no projects yet. Create one: contextbase project create NAME",
    )
    return CommandResult(projects, rows)


@commands.command("show")
@command
def show(client: Client, name: Name) -> CommandResult:
    """Show one project and its size."""
    project = _found(client, name)
    return CommandResult(project, partial(_print_project, project))


def _print_project(project: ProjectDetail) -> None:
    console.print(f"[bold]{project.name}[/]  {escape(project.description)}", highlight=False)
    console.print(f"id        {project.id}", highlight=False)
    console.print(f"created   {local_time(project.created_at, seconds=True)}", highlight=False)
    _print_sharing(project)
    if project.bytes is None or project.stored_bytes is None:
        console.print(
            f"head      commit {project.head} (its size is shown to those who may see all of it)", highlight=False
        )
        return
    console.print(f"head      commit {project.head}, {_files(project)}, {decimal(project.bytes)}", highlight=False)
    console.print(
        f"history   {counted(project.versions or 0, 'version')}, {decimal(project.stored_bytes)} stored",
        highlight=False,
    )


@commands.command("set")
@command
def set_(
    client: Client,
    name: Name,
    gitignore: Annotated[
        bool | None,
        typer.Option(
            "--gitignore/--no-gitignore",
            help="Whether workspaces and imports leave out new files that .gitignore files name.",
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN", help="Share these files though they look like credentials.", show_default=False
        ),
    ] = None,
    disallow: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Take a pattern back that was allowed.", show_default=False),
    ] = None,
) -> CommandResult:
    """Change which new files workspaces commit. Patterns: * in a folder, ** across folders."""
    if gitignore is None and not allow and not disallow:
        raise InvalidInput("Say what to change: --gitignore, --no-gitignore, --allow or --disallow.")
    found = _found(client, name)
    allowed = None
    if allow or disallow:
        before = found.allowed_secrets
        unknown = [pattern for pattern in disallow or () if pattern not in before]
        if unknown:
            raise InvalidInput(f"{unknown[0]} is not among the allowed patterns: {', '.join(before) or 'none'}.")
        allowed = [pattern for pattern in (*before, *(allow or ())) if pattern not in (disallow or ())]
    project = client.projects.change(str(found.id), reads_gitignore=gitignore, allowed_secrets=allowed)
    return CommandResult(project, partial(_print_sharing, project))


@commands.command("egress")
@command
def egress(
    client: Client,
    name: Name,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="pypi.org, *.example.com, example.com:8443, preset:pip, preset:npm, preset:apt or preset:git.",
            show_default=False,
        ),
    ] = None,
    disallow: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="Take a host back.", show_default=False)
    ] = None,
) -> CommandResult:
    """Show or change which hosts the project's sandboxes may reach. Without any they reach none."""
    found = _found(client, name)
    hosts = client.projects.egress(str(found.id)).hosts
    if allow or disallow:
        unknown = [host for host in disallow or () if host not in hosts]
        if unknown:
            raise InvalidInput(f"{unknown[0]} is not among the allowed hosts: {', '.join(hosts) or 'none'}.")
        wanted = [host for host in (*hosts, *(allow or ())) if host not in (disallow or ())]
        hosts = client.projects.set_egress(str(found.id), wanted).hosts
    return CommandResult(hosts, "\n".join(hosts) or "Sandboxes of this project reach no host.")


@commands.command("environment")
@command
def environment(
    client: Client,
    name: Name,
    image: Annotated[
        str | None, typer.Option(help="An image of Docker; '' for the machine's own.", show_default=False)
    ] = None,
    setup: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A script that installs what agents need; - for standard input.", show_default=False
        ),
    ] = None,
    no_setup: Annotated[bool, typer.Option("--no-setup", help="Run no script any more.")] = False,
) -> CommandResult:
    """Show or change what the project's sessions find in their sandboxes: an image, and what a script installs."""
    found = str(_found(client, name).id)
    now = client.projects.environment(found)
    if image is not None or setup is not None or no_setup:
        script = now.setup if setup is None else _script(setup)
        wanted = now.image if image is None else (image or None)
        now = client.projects.set_environment(found, image=wanted, setup="" if no_setup else script)
    told = f"image  {now.image or 'of the machine'}\nsetup  {now.key if now.setup else 'none'}\n\n{now.setup}"
    return CommandResult(now, told.rstrip())


def _script(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as text: {error}.") from None


@commands.command("delete")
@command
def delete(client: Client, name: Name, yes: Yes = False, *, as_json: bool) -> CommandResult:
    """Hide a project and free its name. Its history stays stored."""
    project = _found(client, name)
    if not yes:
        if as_json:
            raise InvalidInput("Deleting with --json needs --yes.")
        files = "" if project.files is None else f"{_files(project)}, "
        typer.confirm(f"Delete project {project.name} ({files}commit {project.head})?", abort=True)
    deleted = client.projects.delete(str(project.id))
    return CommandResult(
        deleted, f"Deleted project {deleted.name}. Its history stays stored under the id {deleted.id}."
    )


def _found(client: Client, text: str) -> ProjectDetail:
    """By name or id; if there is none, by the start or end of an id."""
    try:
        return client.projects.get(text)
    except NotFound:
        if not re.fullmatch(r"[0-9a-f-]{6,}", text):
            raise
        whole = find_id(text, what="project", listed=_ids(client), see="contextbase project list --json")
        return client.projects.get(str(whole))


def _ids(client: Client) -> Iterator[tuple[UUID, str]]:
    for project in _listed(client):
        yield project.id, project.name


def _listed(client: Client) -> Iterator[ProjectView]:
    after: str | None = ""
    while after is not None:
        page = client.projects.list(after=after, limit=1000)
        yield from page.projects
        after = page.next_after


def _files(project: ProjectDetail) -> str:
    return counted(project.files or 0, "file")


def _print_sharing(project: ProjectView) -> None:
    console.print(f"gitignore {'read' if project.reads_gitignore else 'not read'}", highlight=False)
    if project.allowed_secrets:
        console.print(f"allowed   {escape(', '.join(project.allowed_secrets))}", highlight=False)
