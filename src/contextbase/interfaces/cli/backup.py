"""`contextbase backup …` and `contextbase restore`: on the server's machine, with the server up or (restore) down."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBars

from contextbase.backup.archive import Snapshot, manifests, opened_archive
from contextbase.backup.manifest import Manifest
from contextbase.backup.model import BackupProgress, Made, OnProgress, Restored, Verified
from contextbase.backup.verify import verify_backup
from contextbase.config import Settings
from contextbase.interfaces.cli.connection import Data, existing_settings, settings_for
from contextbase.interfaces.cli.maintenance import checked_storage, print_problems
from contextbase.interfaces.cli.output import (
    Json,
    console,
    error_console,
    errors_shown,
    print_json,
    print_table,
    told_if_interrupted,
)
from contextbase.interfaces.cli.phrases import counted, local_time

__all__ = ["commands", "restore"]

commands = typer.Typer(help="Create and verify backups of everything.", no_args_is_help=True)

Target = Annotated[
    Path, typer.Argument(help="A folder (later backups add what is new), or a new FILE.tar.", show_default=False)
]
Source = Annotated[Path, typer.Argument(help="The folder or tar file of a backup.", show_default=False)]
SnapshotName = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        metavar="NAME",
        help="A name from `contextbase backup list`. Default: the newest.",
        show_default=False,
    ),
]


@commands.command("create")
@errors_shown
def create(target: Target, data: Data = None, as_json: Json = False) -> None:
    """Back up everything as it is at this moment, while others write. Exit code 1 if anything is damaged."""

    async def run(settings: Settings) -> Made:
        from contextbase.bootstrap import open_core  # with all of the server: other commands start without

        async with open_core(settings, create=False) as services:
            with _bars(quiet=as_json) as on_progress:
                return await services.backups.create(target.absolute(), on_progress=on_progress)

    with told_if_interrupted(lambda: "No backup was made."):
        made = asyncio.run(run(existing_settings(data)))
    manifest = made.manifest
    if as_json:
        print_json(_summary(manifest) | {"new_blobs": made.new_blobs, "new_bytes": made.new_bytes})
    else:
        name, place = escape(manifest.snapshot), escape(str(target))
        console.print(f"Made backup [bold]{name}[/] in {place}.", highlight=False, soft_wrap=True)
        console.print(
            f"{counted(len(manifest.projects), 'project')}, {counted(_rows(manifest), 'row')} "
            f"({decimal(manifest.table_bytes)}), {counted(manifest.blobs.count, 'blob')} "
            f"({decimal(manifest.blobs.bytes)}, of which {decimal(made.new_bytes)} are new).",
            highlight=False,
        )
        for name in manifest.damaged:
            console.print(
                f"[bold red]damaged[/] {name}: it is not in the backup. See `contextbase fsck`.", highlight=False
            )
    if manifest.damaged:
        raise typer.Exit(1)


@commands.command("verify")
@errors_shown
def verify(source: Source, snapshot: SnapshotName = None, as_json: Json = False) -> None:
    """Read a whole backup and check it; no database is needed. Exit code 1 if anything is wrong."""

    async def run() -> Verified:
        with _bars(quiet=as_json) as on_progress:
            return await verify_backup(source.absolute(), snapshot=snapshot, on_progress=on_progress)

    with told_if_interrupted(lambda: "Not everything was checked."):
        verified = asyncio.run(run())
    if as_json:
        print_json(_summary(verified.manifest) | {"ok": not verified.problems, "problems": verified.problems})
    else:
        for problem in verified.problems:
            console.print(f"[bold red]wrong[/] {escape(problem)}", highlight=False, soft_wrap=True)
        name = escape(verified.manifest.snapshot)
        console.print(
            f"[red]{counted(len(verified.problems), 'problem')} in {name}.[/]"
            if verified.problems
            else f"No problems found in {name}.",
            highlight=False,
        )
    if verified.problems:
        raise typer.Exit(1)


@commands.command("list")
@errors_shown
def list_(source: Source, as_json: Json = False) -> None:
    """List the finished backups in a folder or tar file, oldest first."""

    async def run() -> list[Manifest]:
        async with opened_archive(source.absolute()) as reader:
            return await manifests(reader)

    found = asyncio.run(run())
    if as_json:
        print_json([_summary(manifest) for manifest in found])
        return
    rows = [
        (
            manifest.snapshot,
            local_time(manifest.started_at),
            manifest.contextbase,
            len(manifest.projects),
            decimal(manifest.table_bytes + manifest.blobs.bytes),
        )
        for manifest in found
    ]
    print_table(
        ("SNAPSHOT", "MADE", "CONTEXTBASE", "PROJECTS", "SIZE"),
        rows,
        empty=f"There are no finished backups in {source}.",
        whole=("SNAPSHOT",),
    )


@errors_shown
def restore(
    source: Source,
    snapshot: SnapshotName = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not verify everything afterwards.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Restore a backup into an empty data folder or database, and verify it. Exit code 1 if anything is damaged."""
    settings = settings_for(data)

    async def run() -> Restored:
        from contextbase.bootstrap import open_restore  # with all of the server: other commands start without

        async with opened_archive(source.absolute()) as reader:
            await Snapshot.of(reader, snapshot)  # before a data folder is made for nothing
        async with open_restore(settings) as restoring:
            with _bars(quiet=as_json) as on_progress:
                return await restoring.restore(source.absolute(), snapshot=snapshot, on_progress=on_progress)

    with told_if_interrupted(lambda: "Nothing was restored."):
        restored = asyncio.run(run())
    if not as_json:
        console.print(
            f"Restored {escape(restored.manifest.snapshot)}: {counted(len(restored.manifest.projects), 'project')}, "
            f"{counted(restored.rows, 'row')}, {counted(restored.manifest.blobs.count, 'blob')}.",
            highlight=False,
            soft_wrap=True,
        )
    with told_if_interrupted(lambda: "The restore itself is complete; `contextbase fsck` verifies it."):
        checked, problems = (0, []) if no_check else checked_storage(settings, quiet=as_json)
    if as_json:
        body = _summary(restored.manifest) | {"data": str(settings.data), "rows": restored.rows}
        print_json(body | {"checked": not no_check, "ok": not problems, "problems": problems})
    else:
        if not no_check:
            print_problems(checked, problems)
        console.print("Every project has a new epoch: clients must check out again before they commit.")
    if problems:
        raise typer.Exit(1)


@contextmanager
def _bars(*, quiet: bool) -> Iterator[OnProgress]:
    columns = (
        *(TextColumn("{task.description:9}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()),
        TimeElapsedColumn(),
    )
    with ProgressBars(
        *columns, console=error_console, disable=quiet or not error_console.is_terminal, transient=True
    ) as bars:
        tasks: dict[str, Any] = {}

        def on_progress(progress: BackupProgress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bars.add_task(progress.stage, total=progress.total)
            bars.update(tasks[progress.stage], completed=progress.done, total=progress.total)

        yield on_progress


def _rows(manifest: Manifest) -> int:
    return sum(table.rows for table in manifest.tables)


def _summary(manifest: Manifest) -> dict[str, Any]:
    body = manifest.model_dump(
        mode="json", include={"snapshot", "contextbase", "started_at", "finished_at", "projects"}
    )
    return body | {
        "schema": len(manifest.migrations),
        "rows": _rows(manifest),
        "table_bytes": manifest.table_bytes,
        "blobs": manifest.blobs.count,
        "blob_bytes": manifest.blobs.bytes,
        "damaged": list(manifest.damaged),
    }
