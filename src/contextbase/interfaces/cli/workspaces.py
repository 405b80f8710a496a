"""`contextbase workspace …`: a private folder for every agent, and the way back."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, cast, get_args

import typer
from rich.text import Text

from contextbase.errors import Forbidden, InvalidInput
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.connection import NamedProject, Project, agent_here
from contextbase.interfaces.cli.diff import Values, patches
from contextbase.interfaces.cli.options import Folder, Limit, Message, Yes
from contextbase.interfaces.cli.output import (
    error_console,
    on_one_line,
    print_line,
    print_table,
)
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.interfaces.cli.workspace_text import (
    drawn_commit,
    drawn_completion,
    drawn_refresh,
    drawn_status,
    went_in,
)
from contextbase.sdk import Client
from contextbase.wire.files import FileOperationView, FileWriteView
from contextbase.wire.workspace import WorkspaceDiffView, WorkspaceStateName, WorkspaceView

__all__ = ["commands"]

commands = typer.Typer(help="Work in private folders, and commit from there.", no_args_is_help=True)

_PAGE: Final = 1000

Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        help="Whose workspace, such as indexer (another's needs 'admin'). Default: that of the workspace you are in, "
        "else your own.",
        show_default=False,
        callback=agent_here,
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PATH",
        help="Commit this file, or all that match a pattern, though it looks like credentials; repeat for more.",
        show_default=False,
    ),
]
Run = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="NAME", help="A name of yours for the run it belongs to: see `undo --run`.", show_default=False
    ),
]


@commands.command("create")
@command
def create(
    client: Client,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="REF",
            help="Start from this snapshot: a seq, head~3, a time or a tag. Default: the head.",
            show_default=False,
        ),
    ] = None,
    folder: Folder = None,
    meta: Annotated[
        bool, typer.Option("--meta", help="Show what is known about its files in .meta, to `cat`, `ls` and tools.")
    ] = False,
    agent: Agent = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Create a folder with the project's files, and print its path: cd "$(contextbase workspace create)"

    If the agent has a workspace already, that one is printed, as it is."""
    workspace = client.workspaces.create(project, agent=agent, at=at, folder=folder, meta=meta)
    return CommandResult(workspace, partial(_print_path, workspace))


@commands.command("path")
@command
def path(client: Client, agent: Agent = None, *, project: NamedProject) -> CommandResult:
    """Print the path of the agent's workspace. After a crash or reboot the folder is there again."""
    workspace = client.workspaces.get(project, agent=agent)
    return CommandResult(workspace, partial(_print_path, workspace))


@commands.command("view")
@command
def view(client: Client, *, project: NamedProject) -> CommandResult:
    """Print the path of a read-only folder that follows the project's head."""
    shared = client.workspaces.get_shared_folder(project)
    return CommandResult(shared, shared.path)


@commands.command("list")
@command
def list_(
    client: Client,
    state: Annotated[
        str, typer.Option(help="Only workspaces in this state: open, completed, abandoned, lost or all.")
    ] = "open",
    limit: Limit = 100,
    project: Project = None,
) -> CommandResult:
    """List workspaces, newest first: everybody's with 'admin', else your own."""
    if state not in (*get_args(WorkspaceStateName), "all"):
        raise InvalidInput(f"{state[:40]!r} is not a state: {', '.join(get_args(WorkspaceStateName))} or all.")
    found = list(_listed(client, project, None if state == "all" else cast("WorkspaceStateName", state), limit))
    none_open = "There are no open workspaces. Create one: contextbase workspace create"
    empty = none_open if state == "open" and not project else "No workspaces match."
    return CommandResult(found, partial(_print_workspaces, client, found, empty=empty))


def _print_workspaces(client: Client, found: Sequence[WorkspaceView], *, empty: str) -> None:
    names = {each: client.projects.get(str(each)).name for each in {one.project_id for one in found}}
    print_table(
        ("AGENT", "PROJECT", "STATE", "SNAPSHOT", "COMMITS", "SEEN", "MACHINE"),
        (
            (
                one.agent,
                names[one.project_id],
                one.state,
                one.shown_seq,
                one.commits,
                local_time(one.seen_at),
                one.machine,
            )
            for one in found
        ),
        empty=empty,
    )


@commands.command("status")
@command
def status(client: Client, agent: Agent = None, project: Project = None) -> CommandResult:
    """Show what is not committed yet (A added, M modified, D deleted, R renamed).

    X marks what cannot be committed, and !! what is ignored."""
    found = client.workspaces.status(project, agent=agent)
    return CommandResult(found, drawn_status(found))


@commands.command("diff")
@command
def diff(
    client: Client,
    path: Annotated[
        str | None, typer.Argument(help="Only this file, or this folder and all below it.", show_default=False)
    ] = None,
    values: Values = False,
    agent: Agent = None,
    project: Project = None,
) -> CommandResult:
    """Show the changes that are not committed yet."""
    files = _compared(client, project, agent, path)
    without_patches = (file.model_copy(update={"patch": None, "values": None}) for file in files)
    return CommandResult(without_patches, patches(files, values=values))


@commands.command("commit")
@command
def commit(
    client: Client,
    message: Message = "",
    run: Run = None,
    sides: Annotated[
        bool, typer.Option("--sides", help="Write all sides of a conflict to .contextbase/conflicts/ in the folder.")
    ] = False,
    allow: Allow = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Then bring what others have changed into the folder.")
    ] = False,
    agent: Agent = None,
    project: Project = None,
) -> CommandResult:
    """Commit what changed, and keep the folder. Exit code 1 if not everything went in."""
    committed = client.workspaces.commit(
        project,
        agent=agent,
        message=message,
        run=run,
        conflicts_in="files" if sides else "review",
        allow=allow or (),
        refresh=refresh,
    )
    is_failure = bool(committed.reported) or not went_in(committed)
    return CommandResult(committed, drawn_commit(committed), is_failure=is_failure)


@commands.command("refresh")
@command
def refresh(client: Client, agent: Agent = None, project: Project = None) -> CommandResult:
    """Bring what others have changed into the folder (A added, M modified, D deleted), while you work in it.

    Files that you changed too are merged. Those without a clean merge are kept as you have them."""
    refreshed = client.workspaces.refresh(project, agent=agent)
    return CommandResult(refreshed, drawn_refresh(refreshed))


@commands.command("sync")
@command
def sync(client: Client, agent: Agent = None, *, project: NamedProject) -> CommandResult:
    """Register what programs changed in the folder (A added, M modified, D deleted), for `workspace history`."""
    synced = client.files.sync(project, workspace=_name(agent))
    more = synced.registered - len(synced.operations)
    lines = [Text(f"{_sign(one)}  {on_one_line(one.path)}") for one in synced.operations]
    told = [Text(f"{counted(synced.registered, 'change was', 'changes were')} registered.")]
    return CommandResult(synced, [*lines, *([Text(f"and {more:,} more")] if more else []), *told])


@commands.command("history")
@command
def history(
    client: Client,
    path: Annotated[str | None, typer.Argument(help="Only this file, across renames.", show_default=False)] = None,
    limit: Limit = 50,
    agent: Agent = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Show what was done to the files in the folder, newest first; for commits see `log`."""
    found: list[FileOperationView] = []
    before = None
    while len(found) < limit:
        page = client.files.history(
            project, path, workspace=_name(agent), before=before, limit=min(limit - len(found), _PAGE)
        )
        found += page.operations
        before = page.next_before
        if before is None:
            break
    rows = (
        (local_time(one.at, seconds=True), one.action, one.path, one.operator_type, one.principal, one.message_id)
        for one in found
    )
    columns = ("TIME", "ACTION", "PATH", "WAY IN", "BY", "MESSAGE")
    return CommandResult(found, TableRows(columns=columns, rows=rows, empty="Nothing was done yet."))


@commands.command("complete")
@command
def complete(
    client: Client,
    message: Message = "",
    run: Run = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove the folder even if something in it could not be committed.")
    ] = False,
    allow: Allow = None,
    agent: Agent = None,
    project: Project = None,
) -> CommandResult:
    """Commit what changed, then remove the folder. It is kept if something in it could not be committed.

    Exit code 1 if not everything went in, or the folder is kept."""
    completed = client.workspaces.complete(
        project, agent=agent, message=message, run=run, discard=discard, allow=allow or ()
    )
    is_failure = not completed.removed or not went_in(completed)
    return CommandResult(completed, drawn_completion(completed, here=_here()), is_failure=is_failure)


@commands.command("abandon")
@command
def abandon(
    client: Client, yes: Yes = False, agent: Agent = None, project: Project = None, *, as_json: bool
) -> CommandResult:
    """Remove the folder and everything in it, for good. Asks first if there are changes."""
    question = None if yes else _question(client, project, agent)
    if question is not None:
        if as_json:
            raise InvalidInput(f"{question} Abandoning it with --json needs --yes.")
        typer.confirm(f"{question} Abandon it for good?", abort=True)
    abandoned = client.workspaces.abandon(project, agent=agent)
    return CommandResult(abandoned, f"Removed the workspace of {abandoned.agent}.")


def _sign(registered: FileWriteView) -> str:
    if registered.action == "delete":
        return "D"
    return "A" if registered.old_hash is None else "M"


def _name(agent: str | None) -> str:
    return "me" if agent is None else agent if ":" in agent else f"agent:{agent}"


def _question(client: Client, project: str | None, agent: str | None) -> str | None:
    """What there is to lose; None: nothing."""
    try:
        status = client.workspaces.status(project, agent=agent)
    except Forbidden:  # what it was made from may be seen no more, so neither may its changes
        return "The changes in the folder cannot be listed."
    count = len(status.changes) + len(status.reported)
    folder = Path(status.workspace.path)
    if count:
        return f"{folder} has {counted(count, 'change that is', 'changes that are')} not committed."
    return " ".join(status.left) or None


def _listed(
    client: Client, project: str | None, state: WorkspaceStateName | None, limit: int
) -> Iterator[WorkspaceView]:
    before = None
    while limit > 0:
        page = client.workspaces.list(project, state=state, before=before, limit=min(limit, _PAGE))
        yield from page.workspaces
        limit -= len(page.workspaces)
        before = page.next_before
        if before is None:
            return


def _compared(client: Client, project: str | None, agent: str | None, path: str | None) -> Iterator[WorkspaceDiffView]:
    after: str | None = ""
    while after is not None:
        page = client.workspaces.diff(project, agent=agent, path=path, after=after, patch=True)
        yield from page.files
        after = page.next_after


def _here() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed: perhaps as the folder of the workspace
        return None


def _print_path(workspace: WorkspaceView) -> None:
    """Alone on standard output, for `cd "$(…)"`; what is worth knowing goes beside it."""
    if not Path(workspace.path).is_dir():
        error_console.print(
            f"The folder is on the machine {workspace.machine}, which this machine cannot reach.", highlight=False
        )
    print_line(workspace.path)
