# Generated from aio/reverting.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Rollback, undo, what was set aside, purge: the part of `client.history` that changes something."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.wire.reverting import (
    BringBackCreate,
    PurgeCreate,
    PurgeView,
    RevertingView,
    RollbackCreate,
    UndoCreate,
)

__all__ = ["Reverting"]

_HISTORY: Final = "/api/v1/history"


class Reverting:
    """The way back: rollback, undo, what was set aside, purge."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def rollback(
        self,
        project: str,
        to: str | None = None,
        *,
        path: str | None = None,
        number: int | None = None,
        message: str = "",
        dry_run: bool = False,
    ) -> RevertingView:
        """Restore a file, a folder or everything to a snapshot (`to`, a ref), or a file to its version `number`.

        It is a new commit: what came since stays in history. With `dry_run` nothing changes, and the answer's
        `preview` shows what would. Raises `ContentPurged` if the content was removed from all history."""
        body = RollbackCreate(project=project, to=to, path=path, number=number, message=message, dry_run=dry_run)
        return self._connection.call(RevertingView, "POST", f"{_HISTORY}/rollback", body)

    @checked
    def undo(
        self,
        project: str,
        *,
        principal: str | None = None,
        run: str | None = None,
        seqs: Sequence[int] | None = None,
        first: int | None = None,
        last: int | None = None,
        path: str | None = None,
        message: str = "",
        dry_run: bool = False,
    ) -> RevertingView:
        """Take back what a principal, a run or commits (`seqs`) did, and keep what others did since; with `first` and
        `last` only of those commits, with `path` only there.

        Where others built on it, it goes to review. With `dry_run` nothing changes, and the answer's `preview` shows
        what would."""
        body = UndoCreate(
            project=project,
            principal=principal,
            run=run,
            seqs=None if seqs is None else list(seqs),
            first=first,
            last=last,
            path=path,
            message=message,
            dry_run=dry_run,
        )
        return self._connection.call(RevertingView, "POST", f"{_HISTORY}/undo", body)

    @checked
    def bring_back(self, project: str, side_version_id: UUID, *, message: str = "") -> RevertingView:
        """Put a version that was set aside where it was meant to be, in place of what is there now. Raises `NotFound`
        if there is no such side version."""
        body = BringBackCreate(project=project, side_version_id=side_version_id, message=message)
        return self._connection.call(RevertingView, "POST", f"{_HISTORY}/bring-back", body)

    @checked
    def purge(
        self,
        project: str,
        *,
        path: str | None = None,
        content_hash: str | None = None,
        confirm: str = "",
        dry_run: bool = False,
    ) -> PurgeView:
        """Remove contents from all history, for good: all that ever was at a path, or one content by its sha256.

        Needs a token that allows 'admin'. `confirm` must be the project's name, else it raises `InvalidInput`; with
        `dry_run` it is not needed, and nothing changes."""
        body = PurgeCreate(project=project, path=path, hash=content_hash, confirm=confirm, dry_run=dry_run)
        return self._connection.call(PurgeView, "POST", f"{_HISTORY}/purge", body)
