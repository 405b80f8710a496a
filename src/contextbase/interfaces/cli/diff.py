"""`contextbase diff` and `contextbase show`."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, TypeVar

import typer
from rich.text import Text

from contextbase.errors import InvalidInput, NotFound
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.log import change_line, commit_line
from contextbase.interfaces.cli.options import By, PathFilter, Run
from contextbase.interfaces.cli.output import on_one_line, visible
from contextbase.interfaces.cli.phrases import counted
from contextbase.sdk import Client
from contextbase.wire.diff import DiffPageView, FileDiffView
from contextbase.wire.workspace import WorkspaceDiffView

__all__ = ["Values", "diff", "patches", "show", "without_patch"]

D = TypeVar("D", FileDiffView, WorkspaceDiffView)

_STYLES: Final = {"+": "green", "-": "red", "@": "cyan", "#": "yellow", "~": "yellow", ">": "cyan"}
_HEADINGS: Final = ("diff ", "+++ ", "--- ", "new ", "old ", "deleted ", "rename ", "Binary ", "Folder ")
# A time has colons of its own.
_REF_AND_PATH: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][^/]*?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})|[^:]*):(.+)")
_GRAPH_WIDTH: Final = 40

Values = Annotated[
    bool, typer.Option("--values", help="Show changed values and cells instead of lines, for files that have them.")
]


@command
def diff(
    client: Client,
    refs: Annotated[
        str | None,
        typer.Argument(
            metavar="REF..REF", help="Two snapshots, or one to compare with the head. Default: the last commit."
        ),
    ] = None,
    path: PathFilter = None,
    commit: Annotated[
        int | None,
        typer.Option("--commit", metavar="SEQ", help="Show what this commit changed.", min=1, show_default=False),
    ] = None,
    by: By = None,
    run: Run = None,
    numbers: Annotated[
        str | None,
        typer.Option(
            "--numbers",
            metavar="N..N",
            help="Compare two versions of the file at --path; N alone: with the newest.",
            show_default=False,
        ),
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only list the files and how many lines changed.")] = False,
    values: Values = False,
    context: Annotated[
        int, typer.Option("--unified", "-U", metavar="N", help="Show N unchanged lines around each change.", min=0)
    ] = 3,
    *,
    project: NamedProject,
) -> CommandResult:
    """Show what differs between two snapshots, or what a commit, a principal or a run changed."""
    if commit is not None and (refs is not None or by is not None or run is not None):
        raise InvalidInput("--commit cannot be combined with REF..REF, --by or --run.")
    if numbers is not None:
        files = iter([_of_versions(client, project, path, numbers, context)])
    else:
        old, new = _range(client, project, refs, whole=by is not None or run is not None)
        files = _files(client, project, old, new, commit=commit, principal=by, run=run, path=path, context=context)
    return CommandResult(map(without_patch, files), _stat(files) if stat else patches(files, values=values))


@command
def show(
    client: Client,
    what: Annotated[
        str, typer.Argument(metavar="SEQ|REF|REF:PATH", help="A commit, or a file in a snapshot.", show_default=False)
    ],
    project: NamedProject,
    as_json: bool,
) -> CommandResult:
    """Show a commit and what it changed, or a file as it was: `contextbase show v1:docs/note.md`"""
    if match := _REF_AND_PATH.fullmatch(what):
        return _file(client, project, client.history.resolve(project, match[1]), match[2], as_json=as_json)
    seq = client.history.resolve(project, what)
    found = client.log(project, before=seq + 1, limit=1).commits
    if not found or found[0].seq != seq:
        raise NotFound(f"There is no commit {seq} that you may see.")
    files = _files(client, project, None, "head", commit=seq)
    if as_json:
        return CommandResult({"commit": found[0], "files": list(map(without_patch, files))}, "")
    rest = found[0].author.message.strip().splitlines()[1:]
    body = [Text(f"    {on_one_line(line)}".rstrip()) for line in rest]
    aside = [change_line(change) for change in found[0].changes if change.side_version_id is not None]
    return CommandResult(None, _with_heading([commit_line(found[0]), *body, *aside, Text()], files))


def _file(client: Client, project: str, seq: int, path: str, *, as_json: bool) -> CommandResult:
    if as_json:
        entries = client.checkout(project, paths=[path], seq=seq, contents=True).entries
        if not entries:
            raise NotFound(f"There is nothing at {path} that you may read.")
        return CommandResult(entries[0], "")

    def write() -> None:
        for piece in client.download(project, path=path, seq=seq):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    return CommandResult(None, write)


def without_patch(file: D) -> D:
    """For programs, which have the values."""
    return file.model_copy(update={"patch": None, "values": None})


def _range(client: Client, project: str, refs: str | None, *, whole: bool) -> tuple[str, str]:
    """The two snapshots that are meant; `whole`: without a word, all of the history."""
    if refs is None:
        head = client.history.resolve(project)
        return "0" if whole else str(max(0, head - 1)), str(head)
    old, dots, new = refs.partition("..")
    return old or "head", (new or "head") if dots else "head"


def _of_versions(client: Client, project: str, path: str | None, numbers: str, context: int) -> FileDiffView:
    match = re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9})?)?", numbers)
    if match is None or path is None:
        raise InvalidInput("Name a file and two of its versions: --path PATH --numbers 3..5")
    new = int(match[2]) if match[2] else None
    return client.history.diff_versions(project, path, int(match[1]), new, context=context, patch=True)


def _files(
    client: Client,
    project: str,
    old: str | None,
    new: str,
    *,
    commit: int | None = None,
    principal: str | None = None,
    run: str | None = None,
    path: str | None = None,
    context: int = 3,
) -> Iterator[FileDiffView]:
    """Every page of them."""
    page: DiffPageView | None = None
    while page is None or page.next_after is not None:
        if page is not None:
            old, new, commit = str(page.old), str(page.new), None  # the snapshots that were found first
        page = client.history.diff(
            project,
            None if commit is not None else old,
            new,
            commit=commit,
            principal=principal,
            run=run,
            path=path,
            after=(page.next_after if page else None) or "",
            context=context,
            patch=True,
        )
        yield from page.files


def _with_heading(heading: list[Text], files: Iterator[FileDiffView]) -> Iterator[Text]:
    yield from heading
    yield from patches(files, values=False)


def patches(files: Iterator[FileDiffView | WorkspaceDiffView], *, values: bool) -> Iterator[Text]:
    for file in files:
        if values and file.values:
            yield Text(f"{file.status} {visible(file.path)}", style="bold")
            yield from (_styled(line) for line in file.values.splitlines())
        else:
            in_hunks = False
            for line in (file.patch or "").split("\n")[:-1]:
                in_hunks = in_hunks or line.startswith("@@")
                yield (
                    Text(visible(line), style="bold") if not in_hunks and line.startswith(_HEADINGS) else _styled(line)
                )


def _styled(line: str) -> Text:
    return Text(visible(line), style=_STYLES.get(line[:1], ""))


def _stat(compared: Iterable[FileDiffView]) -> Iterator[Text]:
    files = list(compared)
    names = [visible(f"{file.old_path} -> {file.path}" if file.status == "renamed" else file.path) for file in files]
    width = max(map(len, names), default=0)
    most = max((file.added_lines + file.removed_lines for file in files), default=0)
    scale = min(1.0, _GRAPH_WIDTH / most) if most else 1.0
    for name, file in zip(names, files, strict=True):
        if file.kind == "binary":
            sizes = [side.size if side else 0 for side in (file.old, file.new)]
            yield Text(f" {name:{width}} | {sizes[0]} -> {sizes[1]} bytes")
            continue
        plus, minus = (max(1, round(count * scale)) if count else 0 for count in (file.added_lines, file.removed_lines))
        count = file.added_lines + file.removed_lines
        yield Text.assemble(f" {name:{width}} | {count:>5} ", ("+" * plus, "green"), ("-" * minus, "red"))
    added, removed = (sum(getattr(file, side) for file in files) for side in ("added_lines", "removed_lines"))
    yield Text(f" {counted(len(files), 'file')} changed, {counted(added, 'line')} added, {removed:,} removed")
