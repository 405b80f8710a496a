"""`contextbase export`: a snapshot, or a part of it, as a folder or an archive on this machine."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn

from contextbase.ids import TreePath
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.options import PathFilter, Workspace
from contextbase.interfaces.cli.output import error_console, told_if_interrupted
from contextbase.interfaces.cli.transfers import write_file
from contextbase.interfaces.cli.unpacking import unpack
from contextbase.sdk import ArchiveFormat, Client

__all__ = ["export"]

_FORMATS: Final[dict[str, ArchiveFormat]] = {".tar": "tar", ".tar.gz": "tar.gz", ".tgz": "tar.gz", ".zip": "zip"}


@command
def export(
    client: Client,
    target: Annotated[
        str,
        typer.Argument(
            metavar="DIR|FILE",
            help="A new or empty folder, or a .tar, .tar.gz or .zip file; - writes a tar file to standard output.",
            show_default=False,
        ),
    ],
    path: PathFilter = None,
    at: Annotated[str, typer.Option("--at", metavar="REF", help="The snapshot to export.")] = "head",
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult | None:
    """Write a snapshot, or a part of it, to a folder or an archive; or what stands in an open workspace."""
    seq = client.history.resolve(project, at) if workspace is None else None
    form: ArchiveFormat = next((form for ending, form in _FORMATS.items() if target.endswith(ending)), "tar")
    pieces = (
        client.files.archive(project, path, form=form, workspace=workspace)
        if workspace is not None
        else client.history.archive(project, at=str(seq), path=path, form=form)
    )
    if target == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return None
    files = None
    with told_if_interrupted(lambda: _left(target)), _progress(pieces, target) as shown:
        if target.endswith(tuple(_FORMATS)):
            write_file(Path(target), shown)
        else:
            files = unpack(Path(target), shown, TreePath)
    answer = {"snapshot": seq, "target": target, "files": files}
    return CommandResult(answer, f"Exported {'the workspace' if seq is None else f'snapshot {seq}'} to {target}.")


def _left(target: str) -> str:
    if target.endswith(tuple(_FORMATS)):
        return f"{target} was not written."
    return f"{target} has only a part of it."


@contextlib.contextmanager
def _progress(pieces: Iterator[bytes], target: str) -> Iterator[Iterator[bytes]]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), DownloadColumn())
    with Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as progress:
        task = progress.add_task(f"to {target}", total=None)

        def counted() -> Iterator[bytes]:
            for piece in pieces:
                progress.advance(task, len(piece))
                yield piece

        yield counted()
