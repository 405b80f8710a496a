"""`contextbase status`: asked often, and first, so it imports little."""

from typing import Final

import typer

from contextbase.errors import Unavailable
from contextbase.interfaces.cli.connection import Data, found_server
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json
from contextbase.machines.states import machine_states
from contextbase.servers.request import get

__all__ = ["status"]

_READY_OR_NOT: Final = frozenset({200, 503})
_ALLOWED_OR_NOT: Final = frozenset({200, 403})


@errors_shown
def status(data: Data = None, as_json: Json = False) -> None:
    """Say whether the server runs, where, and whether its parts answer; exit 1 if not."""
    server = found_server(data)
    readiness = get(server.url, server.token, "/readyz", accept=_READY_OR_NOT)
    version = get(server.url, server.token, "/api/v1/version")
    me = get(server.url, server.token, "/api/v1/me")
    if {"status", "database", "blobs"} - readiness.keys() or "version" not in version or "principal" not in me:
        raise Unavailable(f"What {server.url} answers is not contextbase's. Is the URL right?")
    found = get(server.url, server.token, "/api/v1/machines", accept=_ALLOWED_OR_NOT).get("machines")
    machines = None if found is None else {str(one["name"]): str(one["state"]) for one in found}
    if as_json:
        told = {"url": server.url, "version": version["version"], **readiness, "principal": me["principal"]}
        print_json(told if machines is None else {**told, "machines": machines})
    else:
        state = readiness["status"].replace("_", " ")
        console.print(f"contextbase {version['version']} at {server.url}: {state}", highlight=False)
        console.print(
            f"database  {readiness['database']}\nblobs     {readiness['blobs']}\nyou       {me['principal']}",
            highlight=False,
        )
        if machines is not None:
            console.print(f"machines  {machine_states(machines)}", highlight=False)
    if readiness["status"] != "ready":
        raise typer.Exit(1)
