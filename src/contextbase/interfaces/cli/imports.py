"""`contextbase import`: a folder of this machine into a project."""

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from contextbase.errors import ContextbaseError, error_of_code
from contextbase.identity.levels import check_pattern
from contextbase.ids import TreePath
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.import_plan import ImportPlan, ProjectTree, planned
from contextbase.interfaces.cli.local_tree import FileChoice, LocalEntry, LocalTree
from contextbase.interfaces.cli.options import DryRun, Message
from contextbase.interfaces.cli.output import error_console, print_line, progress, told_if_interrupted
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.transfers import INLINE_BYTES, pieces_of
from contextbase.sdk import Change, Client
from contextbase.wire.commit import ChangeView
from contextbase.workspaces.ignore_rules import ExcludePatterns

__all__ = ["import_folder"]


@command
def import_folder(
    client: Client,
    folder: Annotated[Path, typer.Argument(help="A folder on this machine.", show_default=False)],
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="PATH",
            help="Import into this folder of the project.",
            show_default=False,
            autocompletion=complete_path,
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Also delete from the project what is not in the folder.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out what matches, written as in a .gitignore; repeat for more.",
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Import this file, or all that match a pattern, though it looks like credentials; repeat for more.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    message: Message = "",
    *,
    project: NamedProject,
    as_json: bool,
) -> CommandResult:
    """Commit the files of a folder on this machine. What others change meanwhile is merged.

    New files that .gitignore or .contextbaseignore name are left out. Run it again after an interruption: what is in
    the project already is not written again."""
    below = TreePath.parse(prefix) if prefix else None
    allowed = [check_pattern(pattern) for pattern in allow or ()]
    settings = client.projects.get(project)
    target = ProjectTree.read(client, project, below)
    choice = FileChoice(
        reads_gitignore=settings.reads_gitignore,
        excludes=ExcludePatterns(exclude or ()),
        tracked=target.tracked,
    )
    tree = LocalTree.scan(folder, prefix=below, choice=choice)
    with progress("comparing", len(tree.entries)) as advance:
        plan = planned(
            client, target, tree, delete=delete, allowed=[*settings.allowed_secrets, *allowed], advance=advance
        )
    if plan.commits > 1 and not dry_run and not as_json:
        _announce(plan)
    work = _Import(client, target, tree, plan, message or f"Import {folder.name}")
    if not dry_run:
        work.run()
    refused = [answer for answer in work.answers if answer.status == "refused"]
    if refused and not as_json:
        _print(tree, plan, work.answers, dry_run=dry_run)
        raise error_of_code(
            refused[0].code or "forbidden",
            f"{counted(len(refused), 'change was', 'changes were')} refused: {refused[0].reason}",
        )
    return CommandResult(
        _answer(target, tree, plan, work.answers),
        lambda: _print(tree, plan, work.answers, dry_run=dry_run),
        is_failure=bool(refused or tree.left_out or plan.held_back),
    )


class _Import:
    def __init__(self, client: Client, project: ProjectTree, tree: LocalTree, plan: ImportPlan, message: str) -> None:
        self._client = client
        self._project = project
        self._tree = tree
        self._plan = plan
        self._message = message
        self._seqs: list[int] = []
        self._done = 0
        self.answers: list[ChangeView] = []

    def run(self) -> None:
        plan = self._plan
        with told_if_interrupted(self._so_far), progress("importing", max(plan.size, 1), in_bytes=True) as advance:
            try:
                for paths in plan.deletions:
                    self._commit([Change(action="delete", path=path) for path in paths])
                for portion in plan.portions:
                    self._commit([self._change(entry, advance) for entry in portion])
            except ContextbaseError:
                error_console.print(self._so_far(), highlight=False, soft_wrap=True)
                raise

    def _commit(self, changes: list[Change]) -> None:
        answer = self._client.commit(self._project.name, changes, base_seq=self._project.seq, message=self._message)
        self.answers += answer.changes
        self._done += 1
        if answer.committed:
            self._seqs.append(answer.seq)

    def _so_far(self) -> str:
        seqs = f" ({self._seqs[0]} to {self._seqs[-1]})" if self._seqs else ""
        return (
            f"{len(self.answers):,} of {counted(self._plan.changes, 'change')} went in. That is {self._done:,} of "
            f"{counted(self._plan.commits, 'commit')}{seqs}, and perhaps the one that was under way. Run the same "
            "import again for the rest."
        )

    def _change(self, entry: LocalEntry, advance: Callable[[int], None]) -> Change:
        if entry.kind == "directory":
            return Change(action="mkdir", path=entry.path)
        if entry.kind == "symlink":
            encoded = base64.b64encode(self._tree.link(entry)).decode()
            advance(entry.size)
            return Change(action="write", path=entry.path, kind="symlink", base64=encoded)
        with self._tree.opened(entry) as file:
            start = file.read(INLINE_BYTES)
            if len(start) <= entry.size and len(start) < INLINE_BYTES:  # longer: it has grown, and has no room there
                advance(len(start))
                encoded = base64.b64encode(start).decode()
                return Change(action="write", path=entry.path, base64=encoded, executable=entry.executable)
            uploaded = self._client.upload(self._project.name, pieces_of(file, advance, start))
        return Change(action="write", path=entry.path, hash=uploaded.hash, executable=entry.executable)


def _announce(plan: ImportPlan) -> None:
    """Before it starts: whoever watches sees that it comes in parts, and each part is there when it is done."""
    parts = f"{counted(plan.changes, 'change')} ({decimal(plan.size)}) in {counted(plan.commits, 'commit')}"
    error_console.print(f"Importing {parts}, one after the other.", highlight=False)


def _answer(
    project: ProjectTree, tree: LocalTree, plan: ImportPlan, answers: Sequence[ChangeView]
) -> dict[str, object]:
    return {
        "base_seq": project.seq,
        "commits": plan.commits,
        "written": [entry.path for entry in plan.written],
        "deleted": plan.removed,
        "equal": plan.equal,
        "ignored": {name: str(rule) for name, rule in tree.ignored.items()},
        "excluded": tree.excluded,
        "held_back": plan.held_back,
        "left_out": tree.left_out,
        "notes": tree.notes,
        "answers": dict(Counter(answer.status for answer in answers)),
        "refused": [answer for answer in answers if answer.status == "refused"],
    }


def _print(tree: LocalTree, plan: ImportPlan, answers: Sequence[ChangeView], *, dry_run: bool) -> None:
    if dry_run:
        for path in plan.removed:
            print_line(f"delete  {path}")
        for entry in plan.written:
            print_line(f"write   {entry.path}{'/' if entry.kind == 'directory' else ''}")
        for name, rule in tree.ignored.items():
            print_line(f"ignore  {name}  ({rule})")
        for name in tree.excluded:
            print_line(f"exclude {name}")
        print_line(
            f"Would write {counted(len(plan.written), 'entry', 'entries')} and delete {len(plan.removed):,} in "
            f"{counted(plan.commits, 'commit')}; {plan.equal:,} already match."
        )
    else:
        counts = Counter(answer.status.replace("_", " ") for answer in answers)
        told = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        print_line(f"{told or 'Nothing to do'}; {plan.equal:,} already matched.")
        if tree.ignored:
            print_line(
                f"Left out {counted(len(tree.ignored), 'ignored file or folder', 'ignored files and folders')}; "
                "--dry-run lists them."
            )
    for note in tree.notes:
        print_line(note)
    for reason in plan.held_back.values():
        print_line(reason)
    for name, why in tree.left_out.items():
        print_line(f"left out  {name}: {why}")
