"""`contextbase db …`"""

import asyncio
import os
import subprocess
from typing import Annotated
from urllib.parse import parse_qsl, unquote, urlsplit

import typer

from contextbase.config import Settings
from contextbase.db.binaries import find_binaries
from contextbase.db.embedded import embedded_address
from contextbase.db.migrations.runner import migrate, pending_migrations
from contextbase.interfaces.cli.connection import Data, existing_settings
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json

__all__ = ["commands"]

commands = typer.Typer(help="Manage the database.", no_args_is_help=True)


@commands.command("migrate")
@errors_shown
def migrate_command(
    data: Data = None,
    check: Annotated[bool, typer.Option("--check", help="Only list the pending migrations.")] = False,
    as_json: Json = False,
) -> None:
    """Upgrade the database to the schema of this version."""

    async def run(settings: Settings) -> list[str]:
        from contextbase.bootstrap import open_database  # with all of the server: other commands start without

        async with open_database(settings, own=False, create=False) as database:
            done = await pending_migrations(database) if check else await migrate(database)
        return [f"{migration.version:04d}_{migration.name}" for migration in done]

    names = asyncio.run(run(existing_settings(data)))
    if as_json:
        print_json({"pending" if check else "applied": names})
    elif names:
        console.print(("Would apply: " if check else "Applied: ") + ", ".join(names))
    else:
        console.print("The schema is up to date.")


@commands.command("shell")
@errors_shown
def shell(data: Data = None) -> None:
    """Open psql on the database. The embedded one is started for this if it is down."""

    async def run(settings: Settings) -> int:
        environment = {
            name: os.environ[name] for name in ("PATH", "HOME", "TERM", "LANG", "PAGER") if name in os.environ
        }
        from contextbase.bootstrap import open_database  # with all of the server: other commands start without

        async with open_database(settings, own=False, create=False):
            command = [find_binaries().program("psql")]
            environment |= _where(settings)
            return await asyncio.to_thread(lambda: subprocess.run(command, env=environment, check=False).returncode)

    raise typer.Exit(asyncio.run(run(existing_settings(data))))


def _where(settings: Settings) -> dict[str, str]:
    """The database as libpq's variables: a password on the command line could be read by everyone on the machine."""
    if settings.database.url is None:
        address = embedded_address(settings.data.absolute() / "postgres")
        return {"PGHOST": address.socket_folder or "", "PGUSER": address.user, "PGDATABASE": address.database}
    url = urlsplit(settings.database.url.get_secret_value())
    query = dict(parse_qsl(url.query))
    parts = {
        "PGHOST": url.hostname or query.get("host"),
        "PGPORT": str(url.port) if url.port else query.get("port"),
        "PGUSER": url.username and unquote(url.username),
        "PGPASSWORD": url.password and unquote(url.password),
        "PGDATABASE": unquote(url.path.lstrip("/")),
        "PGSSLMODE": query.get("sslmode"),
    }
    return {name: value for name, value in parts.items() if value}
