"""`contextbase import`: a folder of this machine into a project."""

import base64
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from contextbase.errors import error_of_code
from contextbase.ids import TreePath
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.files import Message
from contextbase.interfaces.cli.local_tree import LocalEntry, LocalTree
from contextbase.interfaces.cli.output import Json, error_console, errors_shown, print_json, print_line
from contextbase.sdk import Change, Client
from contextbase.wire.commit import ChangeView
from contextbase.wire.tree import EntryView

__all__ = ["import_folder"]

_INLINE_BYTES: Final = 1024 * 1024  # longer files are uploaded by themselves
_COMMIT_BYTES: Final = 4 * 1024 * 1024
_COMMIT_CHANGES: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What makes the project's tree, or a part of it, that of the folder."""

    seq: int
    removed: list[str]
    written: list[LocalEntry]
    equal: int


@errors_shown
def import_folder(
    folder: Annotated[Path, typer.Argument(help="A folder on this machine.", show_default=False)],
    prefix: Annotated[
        str | None, typer.Option("--prefix", help="Into this folder of the project.", show_default=False)
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete what is not in the folder.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Commit the files of a folder, with their modes, links as links. Others' changes since are merged."""
    below = TreePath.parse(prefix) if prefix else None
    tree = LocalTree.scan(folder, prefix=below)
    with connect(data) as client:
        name = named(project)
        plan = _planned(client, name, tree, below, delete=delete)
        answers = [] if dry_run else _carried_out(client, name, tree, plan, message or f"Import {folder.name}")
    if as_json:
        _print_json(tree, plan, answers)
    else:
        _print(tree, plan, answers, dry_run=dry_run)
    refused = [answer for answer in answers if answer.status == "refused"]
    if refused and not as_json:
        raise error_of_code(refused[0].code or "forbidden", f"{len(refused)} were refused: {refused[0].reason}")
    if refused or tree.left_out:
        raise typer.Exit(1)


def _planned(client: Client, project: str, tree: LocalTree, below: TreePath | None, *, delete: bool) -> _Plan:
    there: dict[str, EntryView] = {}
    seq, after = None, ""
    while True:
        page = client.checkout(project, prefix=below, seq=seq, after=after, limit=10_000)
        there |= {entry.path: entry for entry in page.entries}
        seq = page.seq
        if page.next_after is None:
            break
        after = page.next_after
    with _progress("comparing", len(tree.entries)) as progress:
        written = []
        for entry in tree.entries:
            if not _is_equal(tree, entry, there):
                written.append(entry)
            progress.advance(progress.task_ids[0])
    return _Plan(
        seq=seq,
        removed=_removed(tree, below, there) if delete else [],
        written=written,
        equal=len(tree.entries) - len(written),
    )


def _is_equal(tree: LocalTree, entry: LocalEntry, there: dict[str, EntryView]) -> bool:
    found = there.get(entry.path)
    if entry.kind == "directory":
        return found is not None and found.kind == "directory"
    if found is None or (found.kind, found.size, found.executable) != (entry.kind, entry.size, entry.executable):
        return False
    return found.hash == tree.hash(entry)


def _removed(tree: LocalTree, below: TreePath | None, there: dict[str, EntryView]) -> list[str]:
    """What the folder does not have; what is in it and could not be read is not taken for deleted."""
    here = {entry.path for entry in tree.entries}
    folders = {folder for path in here for folder in path.folders}
    unknown = [f"{below}/{name}" if below else name for name in tree.left_out]
    return [
        path
        for path, entry in there.items()
        if path not in here
        and not (entry.kind == "directory" and path in folders)
        and not any(path == name or path.startswith(f"{name}/") for name in unknown)
    ]


def _carried_out(client: Client, project: str, tree: LocalTree, plan: _Plan, message: str) -> list[ChangeView]:
    answers: list[ChangeView] = []
    with _progress("importing", len(plan.removed) + len(plan.written)) as progress:
        for changes in _portions(client, project, tree, plan):
            answers += client.commit(project, changes, base_seq=plan.seq, message=message).changes
            progress.advance(progress.task_ids[0], len(changes))
    return answers


def _portions(client: Client, project: str, tree: LocalTree, plan: _Plan) -> Iterator[list[Change]]:
    """Changes for one commit each: first what makes room, then what comes."""
    for start in range(0, len(plan.removed), _COMMIT_CHANGES):
        yield [Change(action="delete", path=path) for path in plan.removed[start : start + _COMMIT_CHANGES]]
    portion: list[Change] = []
    room = _COMMIT_BYTES
    for entry in plan.written:
        change, size = _change(client, project, tree, entry)
        if portion and (size > room or len(portion) == _COMMIT_CHANGES):
            yield portion
            portion, room = [], _COMMIT_BYTES
        portion.append(change)
        room -= size
    if portion:
        yield portion


def _change(client: Client, project: str, tree: LocalTree, entry: LocalEntry) -> tuple[Change, int]:
    """The change, and how many bytes of content it carries."""
    if entry.kind == "directory":
        return Change(action="mkdir", path=entry.path), 0
    if entry.kind == "symlink":
        target = tree.link(entry)
        encoded = base64.b64encode(target).decode()
        return Change(action="write", path=entry.path, kind="symlink", base64=encoded), len(target)
    with tree.opened(entry) as file:
        start = file.read(_INLINE_BYTES)
        if len(start) < _INLINE_BYTES:
            encoded = base64.b64encode(start).decode()
            change = Change(action="write", path=entry.path, base64=encoded, executable=entry.executable)
            return change, len(start)
        uploaded = client.upload(project, _pieces(start, file))
    return Change(action="write", path=entry.path, hash=uploaded.hash, executable=entry.executable), 0


def _pieces(start: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield start
    while piece := file.read(_INLINE_BYTES):
        yield piece


@contextmanager
def _progress(what: str, count: int) -> Iterator[Progress]:
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as progress:
        progress.add_task(what, total=count)
        yield progress


def _print_json(tree: LocalTree, plan: _Plan, answers: Sequence[ChangeView]) -> None:
    print_json(
        {
            "base_seq": plan.seq,
            "written": [entry.path for entry in plan.written],
            "deleted": plan.removed,
            "equal": plan.equal,
            "left_out": tree.left_out,
            "answers": dict(Counter(answer.status for answer in answers)),
            "refused": [answer.model_dump(mode="json") for answer in answers if answer.status == "refused"],
        }
    )


def _print(tree: LocalTree, plan: _Plan, answers: Sequence[ChangeView], *, dry_run: bool) -> None:
    if dry_run:
        for path in plan.removed:
            print_line(f"delete  {path}")
        for entry in plan.written:
            print_line(f"write   {entry.path}{'/' if entry.kind == 'directory' else ''}")
        print_line(f"{len(plan.written)} to write, {len(plan.removed)} to delete, {plan.equal} are as they should be.")
    else:
        counts = Counter(answer.status.replace("_", " ") for answer in answers)
        told = ", ".join(f"{count} {status}" for status, count in counts.items())
        print_line(f"{told or 'Nothing to do'}; {plan.equal} were there already.")
    for name, why in tree.left_out.items():
        print_line(f"left out  {name}: {why}")
