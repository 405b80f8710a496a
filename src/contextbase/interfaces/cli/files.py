"""`contextbase ls, cat, put, rm, mv`: a project's files from the command line."""

import base64
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Final
from uuid import UUID

import typer
from rich.filesize import decimal

from contextbase.errors import ContextbaseError, InvalidInput, NotFound, error_of_code
from contextbase.interfaces.cli import workspace_files
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import At, LeaseOption, NamedProject, snapshot
from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.options import Message, ProjectPath, Workspace
from contextbase.interfaces.cli.output import print_line, progress, told_if_interrupted
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.transfers import INLINE_BYTES, local_file, pieces_of
from contextbase.sdk import Change, Client
from contextbase.wire.commit import ChangeView, CommitView
from contextbase.wire.files import FileEntryView, FileWriteView
from contextbase.wire.tree import EntryView

__all__ = ["cat", "ls", "mv", "put", "rm", "what_is_left"]

_SIGNS: Final = {"directory": "d", "symlink": "l", "file": "-", "deleted": "x"}

Base = Annotated[
    int | None,
    typer.Option(
        "--base",
        metavar="SEQ",
        help="The commit your change is based on. Default: the head.",
        min=0,
        show_default=False,
    ),
]


@command
def ls(
    client: Client,
    path: Annotated[
        str,
        typer.Argument(
            help="A folder or file. Default: the top folder.", show_default=False, autocompletion=complete_path
        ),
    ] = "",
    recursive: Annotated[bool, typer.Option("--recursive", "-R", help="Also list what is in subfolders.")] = False,
    at: At = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """List the files of a project, or of an open workspace."""
    entries: Sequence[EntryView | FileEntryView]
    if workspace is not None:
        workspace_files.check_no_commit(at=at)
        entries = list(workspace_files.entries_of(client, project, workspace, path, recursive=recursive))
    else:
        entries = list(_listed(client, project, path, recursive=recursive, at=snapshot(client, project, at)))
    return CommandResult(entries, partial(_print_entries, entries))


def _print_entries(entries: Sequence[EntryView | FileEntryView]) -> None:
    if not entries:
        print_line("There are no files. Add one: contextbase put FILE PATH")
    for entry in entries:
        size = decimal(entry.size) if entry.kind == "file" else ""
        print_line(f"{_signs(entry)} {size:>10} {_commit(entry):>6}  {entry.path}{'/' * (entry.kind == 'directory')}")


def _signs(entry: EntryView | FileEntryView) -> str:
    is_executable = isinstance(entry, EntryView) and entry.executable
    return f"{_SIGNS[entry.kind]}{'x' if is_executable else ' '}"


def _commit(entry: EntryView | FileEntryView) -> str:
    return str(entry.seq) if isinstance(entry, EntryView) and entry.seq is not None else ""


@command
def cat(
    client: Client,
    path: ProjectPath,
    at: At = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
    as_json: bool,
) -> CommandResult | None:
    """Print a file. With --json, print its entry with the content, or the first 5,000 characters in a workspace."""
    if workspace is not None:
        workspace_files.check_no_commit(at=at)
        if as_json:
            return CommandResult(client.files.read(project, path, workspace=workspace), "")
        pieces = client.files.download(project, path, workspace=workspace)
    else:
        seq = snapshot(client, project, at)
        if as_json:
            return CommandResult(_entry(client, project, path, at=seq, contents=True), "")
        pieces = client.download(project, path=path, seq=seq)
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return None


@command
def put(
    client: Client,
    file: Annotated[str, typer.Argument(help="A file on this machine; - for standard input.", show_default=False)],
    path: ProjectPath,
    base: Base = None,
    base_version: Annotated[
        int | None, typer.Option(help="The version of the file you made it from; 0: none.", min=0, show_default=False)
    ] = None,
    message: Message = "",
    lease: LeaseOption = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Write a file to a project. What others changed since --base, or --base-version, is merged."""
    if base is not None and base_version is not None:
        raise InvalidInput("Give --base or --base-version, not both.")
    if workspace is not None:
        workspace_files.check_no_commit(base=base, base_version=base_version, message=message)
        return _written([workspace_files.write(client, project, workspace, file, path)])
    with told_if_interrupted(lambda: "Nothing was committed."):
        change = _write_of(client, project, file, path).model_copy(update={"base_version": base_version})
        seq, epoch = _seen(client, project, base)
    with told_if_interrupted(_unknown):
        answer = client.commit(project, [change], base_seq=seq, epoch=epoch, message=message, lease=lease)
    return _committed(answer)


@command
def rm(
    client: Client,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Paths in the project.", show_default=False, autocompletion=complete_path),
    ],
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also delete folders, with everything in them.")
    ] = False,
    base: Base = None,
    message: Message = "",
    lease: LeaseOption = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Delete files. Their history stays."""
    if workspace is not None:
        workspace_files.check_no_commit(base=base, message=message)
        return _written(workspace_files.delete(client, project, workspace, paths, recursive=recursive))
    seq, epoch = _seen(client, project, base)
    targets = [entry for path in paths for entry in _tree(client, project, path, at=seq, recursive=recursive)]
    changes = [Change(action="delete", path=path) for path in dict.fromkeys(targets)]
    with told_if_interrupted(_unknown):
        answer = client.commit(project, changes, base_seq=seq, epoch=epoch, message=message, lease=lease)
    return _committed(answer)


@command
def mv(
    client: Client,
    source: Annotated[
        str, typer.Argument(help="A file or folder in the project.", show_default=False, autocompletion=complete_path)
    ],
    target: Annotated[str, typer.Argument(help="The new path.", show_default=False, autocompletion=complete_path)],
    base: Base = None,
    message: Message = "",
    lease: LeaseOption = None,
    workspace: Workspace = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Rename a file, or a folder with everything in it. Either all of it is renamed or nothing."""
    source, target = source.rstrip("/"), target.rstrip("/")
    if workspace is not None:
        workspace_files.check_no_commit(base=base, message=message)
        return _written(workspace_files.rename(client, project, workspace, source, target))
    seq, epoch = _seen(client, project, base)
    changes = [
        Change(action="rename", path=path, target=target + path.removeprefix(source))
        for path in _tree(client, project, source, at=seq, recursive=True)
    ]
    with told_if_interrupted(_unknown):
        answer = client.commit(project, changes, base_seq=seq, epoch=epoch, message=message, atomic=True, lease=lease)
    return _committed(answer)


def _written(results: list[FileWriteView]) -> CommandResult:
    """To a workspace."""
    return CommandResult(results, partial(workspace_files.print_results, results))


def _seen(client: Client, project: str, base: int | None) -> tuple[int, UUID | None]:
    """What a change is made from: the head, or the seq the user names (of an epoch that only they know)."""
    if base is not None:
        return base, None
    head = client.checkout(project, paths=[])
    return head.seq, head.epoch


def _entry(client: Client, project: str, path: str, *, at: int | None, contents: bool = False) -> EntryView:
    found = client.checkout(project, paths=[path], seq=at, contents=contents)
    if not found.entries:
        raise NotFound(f"There is nothing at {path} that you may read. `contextbase ls` lists what there is.")
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
        raise InvalidInput(
            f"{path} is a folder with {counted(len(below), 'entry', 'entries')}. Add --recursive to include all of it."
        )
    own = client.checkout(project, paths=[path], seq=at).entries
    return list(dict.fromkeys(entry.path for entry in (*below, *own)))


def _write_of(client: Client, project: str, file: str, path: str) -> Change:
    """Short content goes along with the commit; long content is uploaded first."""
    executable = None if file == "-" else os.access(file, os.X_OK)
    with local_file(file) as (opened, size):
        start = opened.read(INLINE_BYTES)
        if len(start) < INLINE_BYTES:
            encoded = base64.b64encode(start).decode()
            return Change(action="write", path=path, base64=encoded, executable=executable)
        with progress(f"uploading {path}", size, in_bytes=True) as advance:
            uploaded = client.upload(project, pieces_of(opened, advance, start))
    return Change(action="write", path=path, hash=uploaded.hash, executable=executable)


def _unknown() -> str:
    return "The commit may have been made or not: `contextbase log` shows it."


def _committed(answer: CommitView) -> CommandResult:
    """What became of each change; a failure if any was refused."""
    refused = [change for change in answer.changes if change.status == "refused"]
    return CommandResult(answer, partial(_print_commit, answer, refused), is_failure=bool(refused))


def _print_commit(answer: CommitView, refused: Sequence[ChangeView]) -> None:
    for change in answer.changes:
        if change.status != "refused":
            place = change.result_path or change.path
            print_line(f"{change.status.replace('_', ' ')}  {place}{what_is_left(change)}")
    if answer.committed:
        print_line(f"Commit {answer.seq}.")
    if refused:
        raise _refusal(refused[0].code, refused[0].reason, more=len(refused) - 1)


def what_is_left(change: ChangeView) -> str:
    """What is left to do about it."""
    if change.status == "in_review" and change.review_id is not None:
        count = counted(len(change.conflicts), "conflict")
        why = f"{count}; decide with" if change.conflicts else "decide with"
        return f"  ({why}: contextbase review show {short_id(change.review_id)})"
    if change.status == "superseded" and change.side_version_id is not None:
        return f"  (another version has precedence; yours is kept as {short_id(change.side_version_id)})"
    return ""


def _refusal(code: str | None, reason: str | None, *, more: int) -> ContextbaseError:
    others = f" {counted(more, 'more change was', 'more changes were')} refused." if more else ""
    return error_of_code(code or "forbidden", f"{reason or 'The change was refused.'}{others}")
