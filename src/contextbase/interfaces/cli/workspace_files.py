"""The commands about files, in an open workspace: nothing of it is committed."""

from collections.abc import Iterator
from typing import Final

from contextbase.errors import InvalidInput, NotFound
from contextbase.interfaces.cli.output import print_line, progress
from contextbase.interfaces.cli.transfers import local_file, pieces_of
from contextbase.sdk import Client
from contextbase.wire.files import FileEntryView, FileWriteView

__all__ = ["check_no_commit", "delete", "entries_of", "print_results", "rename", "write"]

_PAGE: Final = 1000


def entries_of(client: Client, project: str, workspace: str, path: str, *, recursive: bool) -> Iterator[FileEntryView]:
    """A folder's entries by name, or the file itself."""
    try:
        yield from _below(client, project, workspace, path, recursive=recursive)
    except NotFound:
        details = client.files.details(project, path, workspace=workspace)
        yield FileEntryView(**details.model_dump(include=set(FileEntryView.model_fields)))


def _below(client: Client, project: str, workspace: str, path: str, *, recursive: bool) -> Iterator[FileEntryView]:
    after: str | None = ""
    while after is not None:
        page = client.files.list(project, path or None, workspace=workspace, after=after, limit=_PAGE)
        for entry in page.entries:
            if not (recursive and entry.kind == "directory"):
                yield entry
            else:
                yield from _below(client, project, workspace, entry.path, recursive=True)
        after = page.next_after


def write(client: Client, project: str, workspace: str, file: str, path: str) -> FileWriteView:
    """`file`: on this machine; - for standard input."""
    with local_file(file) as (opened, size), progress(f"writing {path}", size, in_bytes=True) as advance:
        return client.files.write(project, path, pieces_of(opened, advance), workspace=workspace)


def delete(client: Client, project: str, workspace: str, paths: list[str], *, recursive: bool) -> list[FileWriteView]:
    return [
        client.files.delete(project, path, recursive=recursive, workspace=workspace) for path in dict.fromkeys(paths)
    ]


def rename(client: Client, project: str, workspace: str, source: str, target: str) -> list[FileWriteView]:
    return [client.files.rename(project, source.rstrip("/"), target.rstrip("/"), workspace=workspace)]


def print_results(results: list[FileWriteView]) -> None:
    for result in results:
        was = f"{result.previous_path} -> " if result.previous_path else ""
        print_line(f"{_DONE[result.action] if result.status == 'written' else result.status}  {was}{result.path}")


def check_no_commit(**options: object) -> None:
    """Raise `InvalidInput` for an option that is about a commit."""
    for name, value in options.items():
        if value:
            raise InvalidInput(f"--{name.replace('_', '-')} is about a commit; with --workspace nothing is committed.")


_DONE: Final = {"write": "written", "delete": "deleted", "rename": "renamed", "mkdir": "made", "sync": "synced"}
