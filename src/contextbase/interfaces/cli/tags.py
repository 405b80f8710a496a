"""`contextbase tag`: names for snapshots."""

from typing import Annotated

import typer

from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line, print_table
from contextbase.interfaces.cli.phrases import local_time
from contextbase.wire.snapshot import TagView

__all__ = ["commands"]

commands = typer.Typer(help="Name snapshots.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The tag's name.", show_default=False)]


@commands.command()
@errors_shown
def create(
    name: Name,
    at: Annotated[str, typer.Option("--at", metavar="REF", help="The snapshot to name.")] = "head",
    message: Annotated[str, typer.Option("--message", "-m", help="What the tag is for.")] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Give a snapshot a name."""
    with connect(data) as client:
        tag = client.history.create_tag(named(project), name, ref=at, message=message)
    if as_json:
        print_json(tag)
    else:
        print_line(f"Tagged snapshot {tag.seq} as {tag.name}.")


@commands.command("list")
@errors_shown
def list_tags(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List the tags."""
    tags: list[TagView] = []
    after: str | None = ""
    with connect(data) as client:
        while after is not None:
            page = client.history.list_tags(named(project), after=after, limit=1000)
            tags += page.tags
            after = page.next_after
    if as_json:
        print_json(tags)
        return
    print_table(
        ("TAG", "SNAPSHOT", "CREATED", "BY", "MESSAGE"),
        ((tag.name, tag.seq, local_time(tag.created_at), tag.created_by, tag.message) for tag in tags),
        empty="There are no tags yet. Tag the head: contextbase tag create NAME",
    )


@commands.command()
@errors_shown
def delete(name: Name, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Delete a tag. The snapshot stays."""
    with connect(data) as client:
        client.history.delete_tag(named(project), name)
    if as_json:
        print_json({"deleted": name})
    else:
        print_line(f"Deleted the tag {name}.")
