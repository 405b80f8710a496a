"""The typed clients of a contextbase server, what to pass to them, and the errors they raise.

Answers are the models of `contextbase.wire`."""

from contextbase.errors import (
    BlobCorrupted,
    BlobMissing,
    BlobStoreDenied,
    BlobStoreUnavailable,
    BlobTruncated,
    BucketMissing,
    Conflict,
    ContentPurged,
    ContextbaseError,
    CursorOutdated,
    Damaged,
    DatabaseUnavailable,
    Forbidden,
    HeldElsewhere,
    InvalidInput,
    InvalidPath,
    InvalidSettings,
    LeaseHeld,
    LeaseLost,
    MachineProblem,
    Misconfigured,
    NotFound,
    PreconditionFailed,
    SchemaTooNew,
    TooBusy,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from contextbase.sdk.async_client import AsyncClient, AuditFilter, Uploadable
from contextbase.sdk.client import Client
from contextbase.sdk.commands import CommandOptions
from contextbase.sdk.events import ReceivedEvent
from contextbase.sdk.feed import FeedReader, Received
from contextbase.sdk.history import ArchiveFormat
from contextbase.sdk.leases import HeldLease
from contextbase.sdk.requests import Change, LeaseRule, Limits, MergeRule, Pick
from contextbase.sdk.sandboxes import AsyncSandbox, ExecOptions, Sandbox, SandboxOptions
from contextbase.sdk.workspaces import OpenWorkspace

__all__ = [
    "ArchiveFormat",
    "AsyncClient",
    "AsyncSandbox",
    "AuditFilter",
    "BlobCorrupted",
    "BlobMissing",
    "BlobStoreDenied",
    "BlobStoreUnavailable",
    "BlobTruncated",
    "BucketMissing",
    "Change",
    "Client",
    "CommandOptions",
    "Conflict",
    "ContentPurged",
    "ContextbaseError",
    "CursorOutdated",
    "Damaged",
    "DatabaseUnavailable",
    "ExecOptions",
    "FeedReader",
    "Forbidden",
    "HeldElsewhere",
    "HeldLease",
    "InvalidInput",
    "InvalidPath",
    "InvalidSettings",
    "LeaseHeld",
    "LeaseLost",
    "LeaseRule",
    "Limits",
    "MachineProblem",
    "MergeRule",
    "Misconfigured",
    "NotFound",
    "OpenWorkspace",
    "Pick",
    "PreconditionFailed",
    "Received",
    "ReceivedEvent",
    "Sandbox",
    "SandboxOptions",
    "SchemaTooNew",
    "TooBusy",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
    "Uploadable",
]
