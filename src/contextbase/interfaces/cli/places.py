"""`contextbase tree, info, mkdir, upload, download`: files of a project, or of an open workspace."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.text import Text

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.connection import At, NamedProject
from contextbase.interfaces.cli.options import ProjectPath, Workspace
from contextbase.interfaces.cli.output import on_one_line, progress, told_if_interrupted
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.interfaces.cli.transfers import local_file, pieces_of, write_file
from contextbase.interfaces.cli.workspace_files import print_results
from contextbase.sdk import Client
from contextbase.wire.files import FileWriteView, FolderTreeView, PlaceInfoView, PlaceUsageView

__all__ = ["download", "info", "mkdir", "tree", "upload"]


@command
def tree(client: Client, at: At = None, workspace: Workspace = None, *, project: NamedProject) -> CommandResult:
    """Show all folders, without files."""
    found = client.files.tree(project, workspace=workspace, at=at)
    return CommandResult(found, _drawn(found, ""))


@command
def info(client: Client, at: At = None, workspace: Workspace = None, *, project: NamedProject) -> CommandResult:
    """Show how many files there are, how much room they take, and when they changed last."""
    sums = client.files.info(project, workspace=workspace, at=at)
    usage = client.files.usage(project, workspace=workspace, at=at)
    answer = {
        "info": sums.model_dump(mode="json", by_alias=True),
        "usage": usage.model_dump(mode="json", by_alias=True),
    }
    return CommandResult(answer, map(Text, _told(sums, usage)))


@command
def mkdir(client: Client, path: ProjectPath, workspace: Workspace = None, *, project: NamedProject) -> CommandResult:
    """Make a folder, with those it lies in."""
    made = client.files.make_folder(project, path.rstrip("/"), workspace=workspace)
    return CommandResult(made, lambda: print_results([made]))


@command
def upload(
    client: Client,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files on this machine.", show_default=False)],
    to: Annotated[
        str | None, typer.Option("--to", metavar="FOLDER", help="The folder. Default: upload.", show_default=False)
    ] = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Add files to a folder. None takes the place of another: data.csv becomes "data (1).csv"."""
    made: list[FileWriteView] = []
    with told_if_interrupted(lambda: f"{counted(len(made), 'file is', 'files are')} in."):
        for file in files:
            with local_file(file) as (opened, size), progress(f"uploading {file}", size, in_bytes=True) as advance:
                pieces = pieces_of(opened, advance)
                made.append(client.files.upload(project, pieces, name=Path(file).name, folder=to, workspace=workspace))
    return CommandResult(made, lambda: print_results(made))


@command
def download(
    client: Client,
    path: ProjectPath,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Where to. Default: the same name, here.", show_default=False),
    ] = None,
    at: At = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Store a file on this machine; a file that is there already is replaced at the end. For folders see `export`."""
    details = client.files.details(project, path, workspace=workspace, at=at)
    if details.kind == "directory":
        raise InvalidInput(f"{path} is a folder. `contextbase export` writes folders and archives.")
    place = target or Path(details.name)
    if place.is_dir():
        place /= details.name
    with (
        told_if_interrupted(lambda: f"{place} was not written."),
        progress(f"to {place}", details.size, in_bytes=True) as advance,
    ):

        def counted_pieces() -> Iterator[bytes]:
            for piece in client.files.download(project, path, workspace=workspace, at=at):
                advance(len(piece))
                yield piece

        write_file(place, counted_pieces())
    answer = details.model_dump(mode="json") | {"target": str(place)}
    return CommandResult(answer, f"{decimal(details.size)} to {place}.")


def _drawn(folder: FolderTreeView, indent: str) -> Iterator[Text]:
    if not indent and not folder.folders:
        yield Text("There are no folders.")
    for below in folder.folders:
        yield Text(f"{indent}{on_one_line(below.name)}/")
        yield from _drawn(below, f"{indent}  ")


def _told(sums: PlaceInfoView, usage: PlaceUsageView) -> Iterator[str]:
    yield f"{counted(sums.files, 'file')} in {counted(sums.folders, 'folder')}, {decimal(sums.disk_usage)}"
    if sums.last_modified is not None:
        yield f"last changed {local_time(sums.last_modified)}"
    if usage.most_bytes is not None:
        yield (
            f"not committed: {counted(usage.uncommitted_files, 'file')}, {decimal(usage.uncommitted_bytes)} "
            f"of at most {decimal(usage.most_bytes)}"
        )
    if sums.last_sync is not None:
        yield f"last sync {local_time(sums.last_sync)}"
