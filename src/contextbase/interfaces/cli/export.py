"""`contextbase export`: a snapshot, or a part of it, as a folder or an archive on this machine."""

import contextlib
import io
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer
from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn

from contextbase.errors import InvalidInput, Unavailable
from contextbase.ids import TreePath
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.options import PathFilter, Workspace
from contextbase.interfaces.cli.output import error_console, told_if_interrupted
from contextbase.interfaces.cli.transfers import write_file
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
            files = _extract(Path(target), shown)
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


def _extract(target: Path, pieces: Iterator[bytes]) -> int:
    """Into a folder that nobody else has anything in. What the archive names is checked like any other path."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise InvalidInput(f"{target} is not empty. Name a new or empty folder.")
        with tarfile.open(fileobj=io.BufferedReader(_Pieces(pieces)), mode="r|") as archive:
            return sum(_extract_entry(archive, entry, target) for entry in archive)
    except tarfile.TarError as error:
        raise Unavailable("The download broke off. Export again, into another folder.") from error
    except OSError as error:
        raise InvalidInput(f"{error.filename or target} cannot be written: {error.strerror}.") from None


def _extract_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> int:
    path = TreePath(entry.name)
    place = target / path
    above = target
    for part in path.parts[:-1]:
        above /= part
        if above.is_symlink():
            raise Unavailable(f"The archive has an entry below the link {above}, so nothing more was written.")
    if entry.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return 0
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        place.symlink_to(entry.linkname)
        return 1
    content = archive.extractfile(entry)
    if content is None:
        raise Unavailable(f"The archive has {path}, which is neither a file, a folder nor a link.")
    with content, _created(place, 0o777 if entry.mode & 0o100 else 0o666) as file:
        shutil.copyfileobj(content, file, 1024 * 1024)
    os.utime(place, (entry.mtime, entry.mtime))
    return 1


def _created(place: Path, mode: int) -> BinaryIO:
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb")


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int] | bytearray") -> int:  # type: ignore[override]  # what io really passes
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
