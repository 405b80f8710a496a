"""Advisory leases: "I am on this file", with an end even when the holder dies.

The port is async, because one implementation lives in PostgreSQL and the server awaits it; the folder's steps are short
and run in a thread. Plain programs use `BlockingLeases`, a thin facade over the same port, so that there is one
implementation of waiting, events and heartbeats, not two.
"""

from contextbase.leases.blocking import BlockingLeases
from contextbase.leases.folder import FolderLeases
from contextbase.leases.model import DEFAULT_TTL, Holder, Lease, LeaseEvent, LeaseEventKind
from contextbase.leases.patterns import overlap
from contextbase.leases.ports import Leases

__all__ = [
    "DEFAULT_TTL",
    "BlockingLeases",
    "FolderLeases",
    "Holder",
    "Lease",
    "LeaseEvent",
    "LeaseEventKind",
    "Leases",
    "overlap",
]
