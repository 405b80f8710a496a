"""The typed clients of a contextbase server."""

from contextbase.sdk.async_client import AsyncClient
from contextbase.sdk.client import Client
from contextbase.sdk.feed import FeedReader
from contextbase.sdk.leases import HeldLease
from contextbase.sdk.sandboxes import AsyncSandbox, Sandbox
from contextbase.sdk.workspaces import OpenWorkspace
from contextbase.wire.commit import ChangeBody as Change

__all__ = [
    "AsyncClient",
    "AsyncSandbox",
    "Change",
    "Client",
    "FeedReader",
    "HeldLease",
    "OpenWorkspace",
    "Sandbox",
]
