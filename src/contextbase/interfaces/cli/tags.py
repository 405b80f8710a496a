"""`contextbase tag`: names for snapshots."""

from typing import Annotated

import typer

from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.phrases import local_time
from contextbase.sdk import Client
from contextbase.wire.snapshot import TagView

__all__ = ["commands"]

commands = typer.Typer(help="Name snapshots.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The tag's name.", show_default=False)]


@commands.command()
@command
def create(
    client: Client,
    name: Name,
    at: Annotated[str, typer.Option("--at", metavar="REF", help="The snapshot to name.")] = "head",
    message: Annotated[str, typer.Option("--message", "-m", help="What the tag is for.")] = "",
    *,
    project: NamedProject,
) -> CommandResult:
    """Give a snapshot a name."""
    tag = client.history.create_tag(project, name, ref=at, message=message)
    return CommandResult(tag, f"Tagged snapshot {tag.seq} as {tag.name}.")


@commands.command("list")
@command
def list_tags(client: Client, *, project: NamedProject) -> CommandResult:
    """List the tags."""
    tags: list[TagView] = []
    after: str | None = ""
    while after is not None:
        page = client.history.list_tags(project, after=after, limit=1000)
        tags += page.tags
        after = page.next_after
    rows = TableRows(
        columns=("TAG", "SNAPSHOT", "CREATED", "BY", "MESSAGE"),
        rows=((tag.name, tag.seq, local_time(tag.created_at), tag.created_by, tag.message) for tag in tags),
        empty="There are no tags yet. Tag the head: contextbase tag create NAME",
    )
    return CommandResult(tags, rows)


@commands.command()
@command
def delete(client: Client, name: Name, *, project: NamedProject) -> CommandResult:
    """Delete a tag. The snapshot stays."""
    client.history.delete_tag(project, name)
    return CommandResult({"deleted": name}, f"Deleted the tag {name}.")
