"""Puts the commands together."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from contextbase import __version__
from contextbase.errors import InvalidInput
from contextbase.interfaces.cli import (
    audit,
    backup,
    blame,
    configuration,
    database,
    diff,
    doctor,
    exporting,
    files,
    going_back,
    importing,
    leases,
    log,
    maintenance,
    policies,
    projects,
    reviews,
    run,
    sandboxes,
    server,
    tags,
    tokens,
    watch,
    worker,
    workspaces,
)
from contextbase.interfaces.cli.output import EXIT_USAGE, report

__all__ = ["app", "main"]

app = typer.Typer(
    name="contextbase",
    help="A shared, versioned context base for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contextbase {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version  # its callback has done the work


app.command()(server.up)
app.command()(server.status)
app.command()(server.login)
app.command()(doctor.doctor)
app.command()(configuration.config)
app.add_typer(projects.commands, name="project")
app.add_typer(tokens.commands, name="token")
app.command()(files.ls)
app.command()(files.cat)
app.command()(files.put)
app.command()(files.rm)
app.command()(files.mv)
app.command()(log.log)
app.command()(diff.diff)
app.command()(diff.show)
app.command()(blame.blame)
app.add_typer(tags.commands, name="tag")
app.command("export")(exporting.export)
app.command("import")(importing.import_folder)
app.command()(audit.audit)
app.command()(going_back.rollback)
app.command()(going_back.undo)
app.command()(going_back.bring_back)
app.command()(going_back.purge)
app.add_typer(reviews.commands, name="review")
app.add_typer(workspaces.commands, name="workspace")
app.command()(run.run)
app.add_typer(sandboxes.commands, name="sandbox")
app.add_typer(leases.commands, name="lease")
app.add_typer(policies.commands, name="policy")
app.add_typer(database.commands, name="db")
app.command()(watch.watch)
app.command()(maintenance.fsck)
app.command()(maintenance.gc)
app.add_typer(backup.commands, name="backup")
app.command()(backup.restore)
app.add_typer(worker.commands, name="worker")


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not every terminal has our "…", and file names may be any bytes
            stream.reconfigure(errors="backslashreplace")
    if "--json" not in sys.argv:
        app()
    try:
        sys.exit(app(standalone_mode=False))
    except typer.BadParameter as error:
        report(InvalidInput(error.format_message()), as_json=True)
    except typer.TyperException as error:
        report(InvalidInput(str(error)), as_json=True)
    sys.exit(EXIT_USAGE)
