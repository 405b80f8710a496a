"""Advisory leases: "I am on this file", with an end even when the holder dies.

The port is async, because one implementation lives in PostgreSQL and the server awaits it; the folder's steps are short
and run in a thread. Plain programs use `SyncLeases`, a thin facade over the same port, so that there is one
implementation of waiting, events and heartbeats, not two.
"""

from contextbase.leases.folder import FolderLeases
from contextbase.leases.model import DEFAULT_TTL, Lease, LeaseEvent, LeaseEventKind, LeaseHolder
from contextbase.leases.patterns import overlap
from contextbase.leases.ports import LeaseManager
from contextbase.leases.sync_leases import SyncLeases

__all__ = [
    "DEFAULT_TTL",
    "FolderLeases",
    "Lease",
    "LeaseEvent",
    "LeaseEventKind",
    "LeaseHolder",
    "LeaseManager",
    "SyncLeases",
    "overlap",
]
