"""Rollback, undo, what was set aside, purge: the part of `client.history` that changes something."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from contextbase.sdk.connection import Connection
from contextbase.sdk.portal import Portal
from contextbase.wire.going_back import (
    BringBackCreate,
    GoingBackView,
    PurgeCreate,
    PurgeView,
    RollbackCreate,
    UndoCreate,
)

__all__ = ["AsyncGoingBack", "GoingBack"]

_HISTORY: Final = "/api/v1/history"


class AsyncGoingBack:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def rollback(
        self,
        project: str,
        to: str | None = None,
        *,
        path: str | None = None,
        number: int | None = None,
        message: str = "",
        dry_run: bool = False,
    ) -> GoingBackView:
        """Make a file, a folder or everything as it was in a snapshot; or a file as it was in its version `number`."""
        body = RollbackCreate(project=project, to=to, path=path, number=number, message=message, dry_run=dry_run)
        return await self._connection.call(GoingBackView, "POST", f"{_HISTORY}/rollback", body)

    async def undo(
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
    ) -> GoingBackView:
        """Take back what a principal, a run or commits did, and keep what others did since."""
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
        return await self._connection.call(GoingBackView, "POST", f"{_HISTORY}/undo", body)

    async def bring_back(self, project: str, side_version_id: UUID, *, message: str = "") -> GoingBackView:
        """Put what was set aside where it was meant to be."""
        body = BringBackCreate(project=project, side_version_id=side_version_id, message=message)
        return await self._connection.call(GoingBackView, "POST", f"{_HISTORY}/bring-back", body)

    async def purge(
        self,
        project: str,
        *,
        path: str | None = None,
        content_hash: str | None = None,
        confirm: str = "",
        dry_run: bool = False,
    ) -> PurgeView:
        """Remove contents from all history, for good. `confirm` with the project's name."""
        body = PurgeCreate(project=project, path=path, hash=content_hash, confirm=confirm, dry_run=dry_run)
        return await self._connection.call(PurgeView, "POST", f"{_HISTORY}/purge", body)


class GoingBack:
    """`AsyncGoingBack` for code that is not async."""

    def __init__(self, going_back: AsyncGoingBack, portal: Portal) -> None:
        self._going_back = going_back
        self._portal = portal

    def rollback(
        self,
        project: str,
        to: str | None = None,
        *,
        path: str | None = None,
        number: int | None = None,
        message: str = "",
        dry_run: bool = False,
    ) -> GoingBackView:
        return self._portal.run(
            self._going_back.rollback(project, to, path=path, number=number, message=message, dry_run=dry_run)
        )

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
    ) -> GoingBackView:
        return self._portal.run(
            self._going_back.undo(
                project,
                principal=principal,
                run=run,
                seqs=seqs,
                first=first,
                last=last,
                path=path,
                message=message,
                dry_run=dry_run,
            )
        )

    def bring_back(self, project: str, side_version_id: UUID, *, message: str = "") -> GoingBackView:
        return self._portal.run(self._going_back.bring_back(project, side_version_id, message=message))

    def purge(
        self,
        project: str,
        *,
        path: str | None = None,
        content_hash: str | None = None,
        confirm: str = "",
        dry_run: bool = False,
    ) -> PurgeView:
        return self._portal.run(
            self._going_back.purge(project, path=path, content_hash=content_hash, confirm=confirm, dry_run=dry_run)
        )
