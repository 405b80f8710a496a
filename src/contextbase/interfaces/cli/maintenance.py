"""`contextbase fsck` and `contextbase gc`: with the server up or down."""

import asyncio
from datetime import timedelta
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from contextbase.config import Settings
from contextbase.interfaces.cli.connection import Data, settings_for
from contextbase.interfaces.cli.output import Json, console, error_console, errors_shown, print_json
from contextbase.storage.collector import Collected
from contextbase.storage.fsck import Problem

__all__ = ["checked_storage", "fsck", "gc", "print_problems"]


@errors_shown
def fsck(data: Data = None, as_json: Json = False) -> None:
    """Verify commits, versions, the audit trail and every blob; exit 1 and name it if anything is damaged."""
    checked, problems = asyncio.run(checked_storage(settings_for(data), quiet=as_json))
    if as_json:
        print_json({"ok": not problems, "blobs": checked, "problems": problems})
    else:
        print_problems(checked, problems)
    if problems:
        raise typer.Exit(1)


def print_problems(checked: int, problems: list[Problem]) -> None:
    for problem in problems:
        where = escape(f"{problem.where}: {problem.message}")
        console.print(f"[bold red]{problem.rule}[/] {where}", highlight=False)
    console.print(
        f"[red]{len(problems)} problems found.[/]" if problems else f"No problems found ({checked} blobs verified)."
    )


async def checked_storage(settings: Settings, *, quiet: bool) -> tuple[int, list[Problem]]:
    """How many blobs were verified, and what was found."""
    from contextbase.bootstrap import open_services  # with all of the server: other commands start without

    problems: list[Problem] = []
    checked = 0
    columns = (TextColumn("{task.description:9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with open_services(settings) as services:
        with Progress(*columns, console=error_console, disable=quiet, transient=True) as progress:
            tasks = {}
            async for step in services.fsck.run():
                if step.stage not in tasks:
                    tasks[step.stage] = progress.add_task(step.stage, total=step.total)
                progress.update(tasks[step.stage], completed=step.done, total=step.total)
                if step.problem:
                    problems.append(step.problem)
                if step.stage == "blobs":
                    checked = step.done
    return checked, problems


@errors_shown
def gc(
    grace_hours: Annotated[float | None, typer.Option(help="Instead of the setting gc_grace_hours.", min=0)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Remove blobs that nothing refers to any more, and leftovers of unfinished uploads."""
    collected = asyncio.run(_gc(settings_for(data, gc_grace_hours=grace_hours), dry_run=dry_run, quiet=as_json))
    if as_json:
        print_json(collected)
        return
    verb = "Would remove" if dry_run else "Removed"
    console.print(f"{verb} {collected.blobs} blobs ({decimal(collected.bytes)}).")


async def _gc(settings: Settings, *, dry_run: bool, quiet: bool) -> Collected:
    from contextbase.bootstrap import open_services  # with all of the server: other commands start without

    async with open_services(settings) as services:
        if not dry_run:  # first, so that the blobs of forgotten uploads go now
            await services.housekeeping.run(uploads_kept=timedelta(hours=settings.gc_grace_hours))
        columns = (TextColumn("collecting"), BarColumn(), TextColumn("{task.completed} blobs"), TimeElapsedColumn())
        with Progress(*columns, console=error_console, disable=quiet, transient=True) as progress:
            task = progress.add_task("", total=None)
            return await services.collector.run(
                grace=timedelta(hours=settings.gc_grace_hours),
                dry_run=dry_run,
                on_progress=lambda collected: progress.update(task, completed=collected.blobs),
            )
