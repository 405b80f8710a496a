"""`contextbase tag`: names for snapshots."""

from typing import Annotated

import typer

from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line, print_table
from contextbase.wire.snapshot import TagView

__all__ = ["commands"]

commands = typer.Typer(help="Names for snapshots.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The tag's name.", show_default=False)]


@commands.command()
@errors_shown
def create(
    name: Name,
    at: Annotated[str, typer.Option("--at", metavar="REF", help="The snapshot.")] = "head",
    message: Annotated[str, typer.Option("--message", "-m", help="What it is good for.")] = "",
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
        print_line(f"{tag.name} is snapshot {tag.seq}.")


@commands.command("list")
@errors_shown
def list_tags(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List the tags."""
    tags: list[TagView] = []
    after: str | None = ""
    with connect(data) as client:
        while after is not None:
            page = client.history.tags(named(project), after=after, limit=1000)
            tags += page.tags
            after = page.next_after
    if as_json:
        print_json(tags)
        return
    print_table(
        ("tag", "snapshot", "made", "by", "message"),
        ((tag.name, tag.seq, f"{tag.created_at:%Y-%m-%d %H:%M}", tag.created_by, tag.message) for tag in tags),
        empty="There are no tags yet. Name the head: contextbase tag create NAME",
    )


@commands.command()
@errors_shown
def delete(name: Name, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Take a name away; the snapshot stays."""
    with connect(data) as client:
        client.history.delete_tag(named(project), name)
    if as_json:
        print_json({"deleted": name})
    else:
        print_line(f"{name} is no tag any more.")
