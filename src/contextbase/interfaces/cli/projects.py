"""`contextbase project …`"""

from typing import Annotated

import typer
from rich.filesize import decimal
from rich.markup import escape

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.connection import Data, connect
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json, print_table

__all__ = ["commands"]

commands = typer.Typer(help="Make, list, show and delete projects.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The project's name or id.")]


@commands.command("create")
@errors_shown
def create(
    name: Annotated[str, typer.Argument(help="a-z, 0-9 and ._- ; at most 100.")],
    description: Annotated[str, typer.Option(help="One sentence about it.")] = "",
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make an empty project."""
    with connect(data) as client:
        project = client.create_project(name, description=description)
    if as_json:
        print_json(project)
    else:
        console.print(f"Made project {project.name} ({project.id}).")


@commands.command("list")
@errors_shown
def list_(data: Data = None, as_json: Json = False) -> None:
    """List the projects you may read."""
    projects, after = [], ""
    with connect(data) as client:
        while True:
            page = client.projects(after=after, limit=1000)
            projects.extend(page.projects)
            if page.next_after is None:
                break
            after = page.next_after
    if as_json:
        print_json(projects)
        return
    print_table(
        ("NAME", "HEAD", "CREATED", "DESCRIPTION"),
        ((p.name, p.head, f"{p.created_at:%Y-%m-%d %H:%M}", p.description) for p in projects),
        empty="There are no projects yet. Make one: contextbase project create NAME",
    )


@commands.command("show")
@errors_shown
def show(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Show one project and its size."""
    with connect(data) as client:
        project = client.project(name)
    if as_json:
        print_json(project)
        return
    console.print(f"[bold]{project.name}[/]  {escape(project.description)}", highlight=False)
    console.print(f"id        {project.id}", highlight=False)
    console.print(f"created   {project.created_at:%Y-%m-%d %H:%M:%S}", highlight=False)
    if project.bytes is None or project.stored_bytes is None:
        console.print(f"head      commit {project.head}; its size is for who may see everything in it", highlight=False)
        return
    console.print(f"head      commit {project.head}, {project.files} files, {decimal(project.bytes)}", highlight=False)
    console.print(f"history   {project.versions} versions, {decimal(project.stored_bytes)} stored", highlight=False)


@commands.command("delete")
@errors_shown
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Hide a project and free its name. Its history stays stored."""
    with connect(data) as client:
        project = client.project(name)
        if not yes:
            if as_json:
                raise InvalidInput("Deleting with --json needs --yes.")
            files = "" if project.files is None else f"{project.files} files, "
            typer.confirm(f"Delete project {project.name} ({files}commit {project.head})?", abort=True)
        deleted = client.delete_project(str(project.id))
    if as_json:
        print_json(deleted)
    else:
        console.print(f"Deleted project {deleted.name}. Its content stays stored under id {deleted.id}.")
