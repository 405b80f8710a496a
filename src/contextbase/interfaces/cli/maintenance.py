"""`contextbase fsck` and `contextbase gc`: with the server up or down."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from contextbase.config import Settings
from contextbase.interfaces.cli.connection import Data, existing_settings
from contextbase.interfaces.cli.options import DryRun
from contextbase.interfaces.cli.output import (
    Json,
    console,
    error_console,
    errors_shown,
    print_json,
    told_if_interrupted,
)
from contextbase.interfaces.cli.phrases import counted
from contextbase.storage.collector import Collected
from contextbase.storage.fsck import FsckProblem

__all__ = ["checked_storage", "fsck", "gc", "print_problems"]


@errors_shown
def fsck(data: Data = None, as_json: Json = False) -> None:
    """Verify commits, versions, the audit trail and every blob. Exit code 1 if anything is damaged."""
    checked, problems = checked_storage(existing_settings(data), quiet=as_json)
    if as_json:
        print_json({"ok": not problems, "blobs": checked, "problems": problems})
    else:
        print_problems(checked, problems)
    if problems:
        raise typer.Exit(1)


def print_problems(checked: int, problems: list[FsckProblem]) -> None:
    for problem in problems:
        where = escape(f"{problem.where}: {problem.message}")
        console.print(f"[bold red]{problem.rule}[/] {where}", highlight=False)
    console.print(
        f"[red]{counted(len(problems), 'problem')} found.[/]"
        if problems
        else f"No problems found ({counted(checked, 'blob')} verified).",
        highlight=False,
    )


def checked_storage(settings: Settings, *, quiet: bool) -> tuple[int, list[FsckProblem]]:
    """How many blobs were verified, and what was found."""
    problems: list[FsckProblem] = []
    with told_if_interrupted(lambda: f"Not everything was checked; {counted(len(problems), 'problem')} so far."):
        return asyncio.run(_check(settings, problems, quiet=quiet)), problems


async def _check(settings: Settings, problems: list[FsckProblem], *, quiet: bool) -> int:
    from contextbase.bootstrap import open_core  # with all of the server: other commands start without

    checked = 0
    columns = (TextColumn("{task.description:9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with open_core(settings, create=False) as services:
        with Progress(
            *columns, console=error_console, disable=quiet or not error_console.is_terminal, transient=True
        ) as progress:
            tasks = {}
            async for step in services.fsck.run():
                if step.stage not in tasks:
                    tasks[step.stage] = progress.add_task(step.stage, total=step.total)
                progress.update(tasks[step.stage], completed=step.done, total=step.total)
                if step.problem:
                    problems.append(step.problem)
                if step.stage == "blobs":
                    checked = step.done
    return checked


@errors_shown
def gc(
    grace_hours: Annotated[
        float | None,
        typer.Option(metavar="HOURS", help="Keep blobs younger than this. Default: the setting gc_grace_hours.", min=0),
    ] = None,
    dry_run: DryRun = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Remove blobs that nothing refers to, and leftovers of unfinished uploads."""
    removed = 0

    def on_removed(blobs: int) -> None:
        nonlocal removed
        removed = blobs

    settings = existing_settings(data, gc_grace_hours=grace_hours)
    with told_if_interrupted(lambda: "" if dry_run else f"{counted(removed, 'blob')} removed so far."):
        collected = asyncio.run(_gc(settings, dry_run=dry_run, quiet=as_json, on_removed=on_removed))
    if as_json:
        print_json(collected)
        return
    verb = "Would remove" if dry_run else "Removed"
    console.print(f"{verb} {counted(collected.blobs, 'blob')} ({decimal(collected.bytes)}).", highlight=False)


async def _gc(settings: Settings, *, dry_run: bool, quiet: bool, on_removed: Callable[[int], None]) -> Collected:
    from contextbase.bootstrap import open_core  # with all of the server: other commands start without

    async with open_core(settings, create=False) as services:
        if not dry_run:  # first, so that the blobs of forgotten uploads go now
            await services.housekeeping.run(uploads_kept=timedelta(hours=settings.retention.gc_grace_hours))
        columns = (TextColumn("collecting"), BarColumn(), TextColumn("{task.completed} blobs"), TimeElapsedColumn())
        with Progress(
            *columns, console=error_console, disable=quiet or not error_console.is_terminal, transient=True
        ) as progress:
            task = progress.add_task("", total=None)

            def on_progress(collected: Collected) -> None:
                progress.update(task, completed=collected.blobs)
                on_removed(collected.blobs)

            return await services.collector.run(
                grace=timedelta(hours=settings.retention.gc_grace_hours), dry_run=dry_run, on_progress=on_progress
            )
