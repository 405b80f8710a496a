"""`contextbase ls, cat, put, rm, mv`: a project's files from the command line."""

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final
from uuid import UUID

import typer
from rich.filesize import decimal

from contextbase.errors import ContextbaseError, InvalidInput, NotFound, error_of_code
from contextbase.interfaces.cli.connection import At, Data, LeaseOption, Project, connect, named, snapshot
from contextbase.interfaces.cli.output import Json, errors_shown, places, print_json, print_line
from contextbase.sdk import Change, Client
from contextbase.wire.commit import CommitView
from contextbase.wire.tree import EntryView

__all__ = ["cat", "ls", "mv", "put", "rm"]

_INLINE_BYTES: Final = 1024 * 1024
_SIGNS: Final = {"directory": "d", "symlink": "l", "file": "-", "deleted": "x"}

FilePath = Annotated[str, typer.Argument(metavar="PATH", help="A path in the project.", show_default=False)]
Base = Annotated[
    int | None,
    typer.Option("--base", help="The commit (seq) you made it from; default: the head.", min=0, show_default=False),
]
Message = Annotated[str, typer.Option("--message", "-m", help="Why; it is in the log.")]


@errors_shown
def ls(
    path: Annotated[str, typer.Argument(help="A folder or file; default: the top.")] = "",
    recursive: Annotated[bool, typer.Option("--recursive", "-R", help="And what lies deeper.")] = False,
    at: At = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List a project's files."""
    with connect(data) as client:
        name = named(project)
        entries = list(_listed(client, name, path, recursive=recursive, at=snapshot(client, name, at)))
    if as_json:
        print_json(entries)
        return
    if not entries:
        print_line("There are no files yet. Put one: contextbase put FILE PATH")
    for entry in entries:
        sign = _SIGNS[entry.kind] + ("x" if entry.executable else "")
        size = decimal(entry.size) if entry.kind == "file" else ""
        commit = "" if entry.seq is None else entry.seq
        print_line(f"{sign:2} {size:>10} {commit:>6}  {entry.path}{'/' if entry.kind == 'directory' else ''}")


@errors_shown
def cat(path: FilePath, at: At = None, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Print a file's content. With --json: its entry, with the content if it is not too long."""
    with connect(data) as client:
        name = named(project)
        seq = snapshot(client, name, at)
        if as_json:
            print_json(_entry(client, name, path, at=seq, contents=True))
            return
        for piece in client.download(name, path=path, seq=seq):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


@errors_shown
def put(
    file: Annotated[str, typer.Argument(help="A file on this machine; - for standard input.", show_default=False)],
    path: FilePath,
    base: Base = None,
    message: Message = "",
    lease: LeaseOption = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write a file into a project. What others changed since --base is merged."""
    name = named(project)
    with connect(data) as client:
        change = _write_of(client, name, file, path)
        seq, epoch = _seen(client, name, base)
        answer = client.commit(name, [change], base_seq=seq, epoch=epoch, message=message, lease=lease)
    _report(answer, as_json=as_json)


@errors_shown
def rm(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Paths in the project.", show_default=False)],
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Folders with all that is in them.")] = False,
    base: Base = None,
    message: Message = "",
    lease: LeaseOption = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete files. Their history stays."""
    name = named(project)
    with connect(data) as client:
        seq, epoch = _seen(client, name, base)
        targets = [entry for path in paths for entry in _tree(client, name, path, at=seq, recursive=recursive)]
        changes = [Change(action="delete", path=path) for path in dict.fromkeys(targets)]
        answer = client.commit(name, changes, base_seq=seq, epoch=epoch, message=message, lease=lease)
    _report(answer, as_json=as_json)


@errors_shown
def mv(
    source: Annotated[str, typer.Argument(help="A file or folder in the project.", show_default=False)],
    target: Annotated[str, typer.Argument(help="Its new path.", show_default=False)],
    base: Base = None,
    message: Message = "",
    lease: LeaseOption = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Rename a file, or a folder with all that is in it: all of it or nothing."""
    name = named(project)
    source, target = source.rstrip("/"), target.rstrip("/")
    with connect(data) as client:
        seq, epoch = _seen(client, name, base)
        changes = [
            Change(action="rename", path=path, target=target + path.removeprefix(source))
            for path in _tree(client, name, source, at=seq, recursive=True)
        ]
        answer = client.commit(name, changes, base_seq=seq, epoch=epoch, message=message, atomic=True, lease=lease)
    _report(answer, as_json=as_json)


def _seen(client: Client, project: str, base: int | None) -> tuple[int, UUID | None]:
    """What a change is made from: the head, or the seq the user names (of an epoch that only they know)."""
    if base is not None:
        return base, None
    head = client.checkout(project, paths=[])
    return head.seq, head.epoch


def _entry(client: Client, project: str, path: str, *, at: int | None, contents: bool = False) -> EntryView:
    found = client.checkout(project, paths=[path], seq=at, contents=contents)
    if not found.entries:
        raise NotFound(f"There is nothing at {path} that you may read; `contextbase ls` lists what there is.")
    return found.entries[0]


def _listed(client: Client, project: str, path: str, *, recursive: bool, at: int | None) -> Iterator[EntryView]:
    """A folder's entries page by page, all of one snapshot; or the file itself."""
    epoch, after, any_found = None, "", False
    while True:
        page = client.checkout(project, prefix=path or None, recursive=recursive, seq=at, epoch=epoch, after=after)
        any_found = any_found or bool(page.entries)
        yield from page.entries
        if page.next_after is None:
            break
        at, epoch, after = page.seq, page.epoch, page.next_after
    if path and not any_found:
        yield _entry(client, project, path, at=at)


def _tree(client: Client, project: str, path: str, *, at: int, recursive: bool) -> list[str]:
    """The path itself if there is a file, else all below it."""
    itself = [entry for entry in client.checkout(project, paths=[path], seq=at).entries if entry.kind != "directory"]
    if itself:
        return [itself[0].path]
    below = list(_listed(client, project, path, recursive=True, at=at))
    if below and not recursive and any(entry.path != path for entry in below):
        raise InvalidInput(f"{path} is a folder with {len(below)} entries; say --recursive to mean all of it.")
    own = client.checkout(project, paths=[path], seq=at).entries
    return list(dict.fromkeys(entry.path for entry in (*below, *own)))


def _write_of(client: Client, project: str, file: str, path: str) -> Change:
    if file == "-":
        return _content(client, project, sys.stdin.buffer, path, executable=None)
    try:
        with Path(file).open("rb") as opened:
            return _content(client, project, opened, path, executable=os.access(file, os.X_OK))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None


def _content(client: Client, project: str, opened: BinaryIO, path: str, *, executable: bool | None) -> Change:
    """Short content goes along with the commit; long content is uploaded first."""
    start = opened.read(_INLINE_BYTES)
    if len(start) < _INLINE_BYTES:
        encoded = base64.b64encode(start).decode()
        return Change(action="write", path=path, base64=encoded, executable=executable)

    def pieces() -> Iterator[bytes]:
        yield start
        while piece := opened.read(_INLINE_BYTES):
            yield piece

    uploaded = client.upload(project, pieces())
    return Change(action="write", path=path, hash=uploaded.hash, executable=executable)


def _report(answer: CommitView, *, as_json: bool) -> None:
    """What became of each change; an error if any was refused."""
    if as_json:
        print_json(answer)
    else:
        for change in answer.changes:
            if change.status != "refused":
                place = change.result_path or change.path
                waiting = f" ({places(len(change.conflicts))} for a person to decide)"
                note = waiting if change.status == "in_review" else ""
                print_line(f"{change.status.replace('_', ' ')}  {place}{note}")
        if answer.committed:
            print_line(f"Commit {answer.seq}.")
    refused = [change for change in answer.changes if change.status == "refused"]
    if refused and as_json:
        raise typer.Exit(1)
    if refused:
        raise _refusal(refused[0].code, refused[0].reason, more=len(refused) - 1)


def _refusal(code: str | None, reason: str | None, *, more: int) -> ContextbaseError:
    others = f" {more} more changes were refused, too." if more else ""
    return error_of_code(code or "forbidden", f"{reason or 'The change was refused.'}{others}")
