"""`contextbase worker …`: workers on a plain folder. Needs no server.

What does the work is imported where it is used: no other command waits for it.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextbase.errors import Conflict, ContextbaseError, InvalidInput
from contextbase.interfaces.cli.output import (
    Json,
    console,
    error_console,
    errors_shown,
    on_one_line,
    print_json,
    print_table,
    report,
)
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.limits import ResourceLimits

if TYPE_CHECKING:
    from contextbase.standalone import FileResult, RunResult, SyncResult, WorkerSandbox

__all__ = ["commands"]

commands = typer.Typer(
    help="Run workers on copies of the files of a plain folder, and merge back what they did.", no_args_is_help=True
)

Root = Annotated[
    Path | None,
    typer.Option(help="Where the sandboxes are. Default: ~/.contextbase/sandbox.", show_default=False),
]


@commands.command("run")
@errors_shown
def run(
    worker: Annotated[
        str, typer.Argument(help="The worker's name. Only one process at a time can use it.", show_default=False)
    ],
    command: Annotated[
        list[str],
        typer.Argument(help="The program and its arguments, after --.", metavar="-- COMMAND", show_default=False),
    ],
    base: Annotated[Path, typer.Option(help="The folder to work on.")] = Path(),
    task: Annotated[
        str, typer.Option(help="A name for the task. The same task continues in the same sandbox.")
    ] = "run",
    copy: Annotated[
        list[str] | None,
        typer.Option(help="A file, folder or pattern to copy into the sandbox; repeat for more.", show_default=False),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=VALUE]", help="A variable to pass on; repeat for more.", show_default=False),
    ] = None,
    memory: Annotated[
        int, typer.Option(metavar="MIB", help="How much memory all its processes may use; 0: no limit.", min=0)
    ] = 512,
    cpu: Annotated[
        float, typer.Option(metavar="PERCENT", help="How much of one processor it may use; 0: no limit.", min=0)
    ] = 50,
    processes: Annotated[
        int, typer.Option(metavar="N", help="How many processes it may have at a time; 0: no limit.", min=0)
    ] = 10,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", help="How long it may take; 0: no limit.", min=0)] = 300,
    disk: Annotated[
        int, typer.Option(metavar="MIB", help="How much it may write to the sandbox; 0: no limit.", min=0)
    ] = 0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the sandbox even if everything was synced back.")] = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Copy files to a sandbox, run a command there, and merge what it changed back into the folder.

    If the command fails, nothing is merged and the sandbox stays: see `worker sync` and `worker clean`."""
    from contextbase.standalone import WorkerSandbox

    limits = ResourceLimits(
        max_memory=memory << 20 or None,
        max_cpu=cpu or None,
        max_processes=processes or None,
        max_execution_time=seconds or None,
        max_disk=disk << 20 or None,
    )
    environment = _environment(env or ())
    synced = None
    with WorkerSandbox(worker, task, base, limits, root=root) as sandbox:
        place = sandbox.path
        left_out = _copied(sandbox, copy or ())
        with _place_told(worker, place):
            done = sandbox.run(command, environment=environment, on_output=None if as_json else _pass_on)
            if done.succeeded:
                synced = sandbox.sync_back()
        is_kept = keep or synced is None or not synced.is_complete
        if not is_kept:
            sandbox.cleanup()
    if as_json:
        kept_at = str(place) if is_kept else None
        answer = {"run": _run_answer(done), "sync": synced and _sync_answer(synced), "left_out": left_out}
        print_json({**answer, "sandbox": kept_at})
    else:
        for name, reason in left_out.items():
            error_console.print(on_one_line(f"not copied: {name}: {reason}"), markup=False, highlight=False)
        _print_run(done, worker, place)
        if synced is not None:
            _print_sync(synced)
            if is_kept:
                error_console.print(_where(worker, place), markup=False, highlight=False, soft_wrap=True)
    if synced is None or not synced.is_complete:
        raise typer.Exit(1)


@commands.command("sync")
@errors_shown
def sync(
    worker: Annotated[str, typer.Argument(help="The worker's name, from `worker list`.", show_default=False)],
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Merge a sandbox into its folder, after a crash, a failed command or work by hand."""
    from contextbase.standalone.leftovers import reopened
    from contextbase.standalone.sandbox_folders import default_root

    with reopened(root or default_root(), worker) as sandbox:
        synced = sandbox.sync_back()
    if as_json:
        print_json(_sync_answer(synced))
    else:
        _print_sync(synced)
    if not synced.is_complete:
        raise typer.Exit(1)


@commands.command("list")
@errors_shown
def list_(root: Root = None, as_json: Json = False) -> None:
    """List the sandboxes on this machine."""
    from contextbase.standalone.sandbox_folders import SandboxFolders, default_root

    sandboxes = SandboxFolders(root or default_root()).list()
    if as_json:
        print_json(sandboxes)
        return
    print_table(
        ("WORKER", "STATE", "TASK", "BASE", "FILES", "CREATED"),
        (
            (info.worker_id, info.state, info.task_id, info.base_dir, info.files, _time(info.created_at))
            for info in sandboxes
        ),
        empty="There are no sandboxes.",
        whole=("WORKER",),
    )


@commands.command("clean")
@errors_shown
def clean(
    workers: Annotated[
        list[str] | None,
        typer.Argument(
            help="The workers whose sandboxes to remove. Default: those that are finished.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Remove all sandboxes that are not in use.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Also remove what is not synced back. It is lost.")
    ] = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Remove sandboxes. One with changes that are not synced back stays, unless you --discard it."""
    from contextbase.standalone import StandaloneState
    from contextbase.standalone.leftovers import clean as clean_sandbox
    from contextbase.standalone.sandbox_folders import SandboxFolders, default_root

    if workers and every:
        raise InvalidInput("Give either names of workers or --all, not both.")
    place = root or default_root()
    wanted = {StandaloneState.FINISHED} if not every else set(StandaloneState) - {StandaloneState.IN_USE}
    names = workers or [info.worker_id for info in SandboxFolders(place).list() if info.state in wanted]
    removed, problems = [], {}
    for name in names:
        try:
            clean_sandbox(place, name, discard=discard)
            removed.append(name)
        except ContextbaseError as error:
            problems[name] = error
    SandboxFolders(place).remove_leftovers()
    if as_json:
        print_json({"removed": removed, "kept": {name: problem.message for name, problem in problems.items()}})
    else:
        console.print(f"Removed {counted(len(removed), 'sandbox', 'sandboxes')}.", highlight=False)
        for problem in problems.values():
            report(problem, as_json=False)
    if problems:
        raise typer.Exit(1)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else local_time(moment)


def _environment(given: Sequence[str]) -> dict[str, str]:
    """What was asked for by name comes from our own environment."""
    found = {}
    for item in given:
        name, is_set, value = item.partition("=")
        if not name or (not is_set and name not in os.environ):
            raise InvalidInput(f"The variable {name!r} is not set. Set it, or pass NAME=value.")
        found[name] = value if is_set else os.environ[name]
    return found


def _copied(sandbox: "WorkerSandbox", wanted: Sequence[str]) -> dict[str, str]:
    """Copy, and give back what was left out. If that comes to nothing, so does the sandbox, unless it was there."""
    try:
        return sandbox.copy(*wanted).left_out if wanted else {}
    except BaseException:
        if sandbox.is_new:
            sandbox.cleanup(discard=True)
        raise


@contextmanager
def _place_told(worker: str, place: Path) -> Iterator[None]:
    try:
        yield
    except ContextbaseError as error:
        raise error.followed_by(_where(worker, place), sandbox=str(place)) from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_where(worker, place)) from None


def _where(worker: str, place: Path) -> str:
    return f"The worker's files are in {place}: contextbase worker sync|clean {worker}"


def _pass_on(stream: str, piece: bytes) -> None:
    target = sys.stdout if stream == "stdout" else sys.stderr
    target.buffer.write(piece)
    target.buffer.flush()


def _print_run(done: "RunResult", worker: str, place: Path) -> None:
    if done.succeeded:
        return
    why = (
        f"was stopped by its {done.stopped_by} limit" if done.stopped_by else f"failed with exit code {done.exit_code}"
    )
    report(Conflict(f"The command {why}. Nothing was synced back. {_where(worker, place)}"), as_json=False)


def _print_sync(synced: "SyncResult") -> None:
    """On standard error: standard output is the command's."""
    for file in synced.files:
        error_console.print(_line(file), markup=False, highlight=False, soft_wrap=True)
    if not synced.files:
        error_console.print("Nothing was changed.")


def _line(file: "FileResult") -> str:
    parts = [f"{file.outcome:9}", file.path, f"({file.action})" if file.action else "", file.reason]
    kept = f"The worker's version: {file.kept_at}" if file.kept_at else ""
    return on_one_line(" ".join(part for part in (*parts, kept) if part))


def _run_answer(done: "RunResult") -> dict[str, object]:
    return {
        "exit_code": done.exit_code,
        "stopped_by": done.stopped_by,
        "stdout": done.stdout.decode(errors="replace"),
        "stderr": done.stderr.decode(errors="replace"),
        "seconds": done.seconds,
        "cpu_seconds": done.cpu_seconds,
        "peak_memory": done.peak_memory,
    }


def _sync_answer(synced: "SyncResult") -> dict[str, object]:
    return {
        "success": [asdict(file) for file in synced.success],
        "merged": [asdict(file) for file in synced.merged],
        "conflicts": [asdict(file) for file in synced.conflicts],
        "failed": [asdict(file) for file in synced.failed],
    }
