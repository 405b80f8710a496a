# Generated from aio/machines.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""The machines of a database, as a part of the clients: `client.machines`. All of it needs 'admin' of all projects."""

from typing import Final
from urllib.parse import quote

from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.wire.machine import MachineForgotten, MachinePage, MachineView

__all__ = ["Machines"]

_MACHINES: Final = "/api/v1/machines"


class Machines:
    """A machine holds workspaces and sandboxes. Every method raises `Forbidden` without 'admin', and `NotFound` if
    there is no machine of that name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> MachinePage:
        """All of them by name, those that do not run as well."""
        return self._connection.read(MachinePage, _MACHINES)

    @checked
    def drain(self, name: str) -> MachineView:
        """Make no new workspaces there. Those that are there go on."""
        return self._connection.call(MachineView, "POST", f"{_MACHINES}/{quote(name, safe='')}/drain")

    @checked
    def resume(self, name: str) -> MachineView:
        """Make new workspaces there again."""
        return self._connection.call(MachineView, "POST", f"{_MACHINES}/{quote(name, safe='')}/resume")

    @checked
    def forget(self, name: str) -> MachineForgotten:
        """Remove a machine that will not come back, and give up the workspaces that were open there. Raises `Conflict`
        while it runs."""
        return self._connection.call(MachineForgotten, "DELETE", f"{_MACHINES}/{quote(name, safe='')}")
