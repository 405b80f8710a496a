"""`AsyncClient`: the server's routes as methods. Answers are the wire models; errors are the tree of errors.py."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID, uuid4

import httpx
from pydantic import ValidationError

from contextbase.errors import InvalidInput, Unavailable
from contextbase.sdk.connection import Body, Connection, parsed
from contextbase.sdk.history import AsyncHistory
from contextbase.sdk.leases import DEFAULT_WAIT_SECONDS, AsyncLeases, HeldLease
from contextbase.sdk.lines import lines_of_async
from contextbase.sdk.policies import AsyncPolicies
from contextbase.sdk.reviews import AsyncReviews
from contextbase.sdk.runs import AsyncRuns
from contextbase.sdk.sandboxes import AsyncSandboxes
from contextbase.sdk.workspaces import AsyncWorkspaces
from contextbase.wire.commit import ChangeBody, CommitCreate, CommitView, UploadView
from contextbase.wire.history import AuditPageView, AuditQuery, AuditRecordView, LogPageView
from contextbase.wire.project import NAME_OR_ID, ProjectCreate, ProjectDetail, ProjectPage, ProjectView
from contextbase.wire.system import Me, Readiness, ServerVersion
from contextbase.wire.token import TokenCreate, TokenCreated, TokenPage, TokenRevoked
from contextbase.wire.tree import CheckoutRequest, CheckoutView, SideVersionPage, VersionPage

__all__ = ["AsyncClient", "Uploadable"]

Uploadable = bytes | Path | Iterable[bytes] | AsyncIterable[bytes]
"""Content of any size: bytes, a file, or pieces."""

_COLLAB: Final = "/api/v1/collab"
_PIECE_BYTES: Final = 1024 * 1024


class AsyncClient:
    """A connection to one server as one principal. Use it as a context manager, or `close` it.

    Commits, uploads and reads are sent again, `attempts` times in all, when the server does not answer or is busy; a
    commit carries an idempotency key, so that it happens once."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_seconds: float = 30.0,
        attempts: int = 6,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(
            url, token, timeout_seconds=timeout_seconds, attempts=attempts, transport=transport
        )
        self.policies = AsyncPolicies(self._connection)
        self.history = AsyncHistory(self._connection)
        self.reviews = AsyncReviews(self._connection)
        self.workspaces = AsyncWorkspaces(self._connection)
        self.runs = AsyncRuns(self._connection)
        self.sandboxes = AsyncSandboxes(self._connection, self.workspaces)
        self.leases = AsyncLeases(self._connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._connection.close()

    async def version(self) -> ServerVersion:
        return await self._connection.call(ServerVersion, "GET", "/api/v1/version")

    async def me(self) -> Me:
        return await self._connection.call(Me, "GET", "/api/v1/me")

    async def readiness(self) -> Readiness:
        """Also answers, rather than raises, when a part is not ready."""
        return parsed(Readiness, await self._connection.send("GET", "/readyz"))

    async def create_project(self, name: str, *, description: str = "") -> ProjectView:
        body = ProjectCreate(name=name, description=description)
        return await self._connection.call(ProjectView, "POST", "/api/v1/projects", body)

    async def projects(self, *, after: str = "", limit: int = 100) -> ProjectPage:
        return await self._connection.call(ProjectPage, "GET", "/api/v1/projects", after=after, limit=limit)

    async def project(self, name_or_id: str) -> ProjectDetail:
        return await self._connection.call(ProjectDetail, "GET", f"/api/v1/projects/{_segment(name_or_id)}")

    async def delete_project(self, name_or_id: str) -> ProjectView:
        return await self._connection.call(ProjectView, "DELETE", f"/api/v1/projects/{_segment(name_or_id)}")

    async def create_token(self, request: TokenCreate) -> TokenCreated:
        return await self._connection.call(TokenCreated, "POST", "/api/v1/tokens", request)

    async def tokens(self, *, before: UUID | None = None, limit: int = 100) -> TokenPage:
        return await self._connection.call(TokenPage, "GET", "/api/v1/tokens", before=before, limit=limit)

    async def revoke_token(self, token_id: UUID) -> TokenRevoked:
        return await self._connection.call(TokenRevoked, "DELETE", f"/api/v1/tokens/{token_id}")

    async def checkout(
        self,
        project: str,
        *,
        paths: Sequence[str] | None = None,
        prefix: str | None = None,
        recursive: bool = True,
        seq: int | None = None,
        epoch: UUID | None = None,
        contents: bool = False,
        after: str = "",
        limit: int = 1000,
    ) -> CheckoutView:
        """Paths, or what is below a prefix, in a snapshot. Its `seq` is the base of what you make from it; pass both
        `seq` and `epoch` on, and a restore in between is told (`CursorOutdated`) instead of mistaken."""
        body = CheckoutRequest(
            project=project,
            paths=None if paths is None else list(paths),
            prefix=prefix,
            recursive=recursive,
            seq=seq,
            epoch=epoch,
            contents=contents,
            after=after,
            limit=limit,
        )
        return await self._connection.retried(
            lambda: self._connection.call(CheckoutView, "POST", f"{_COLLAB}/checkout", body)
        )

    async def commit(
        self,
        project: str,
        changes: Sequence[ChangeBody],
        *,
        base_seq: int | None = None,
        epoch: UUID | None = None,
        message: str = "",
        key: str | None = None,
        atomic: bool = False,
        run: str | None = None,
        lease: int | None = None,
    ) -> CommitView:
        """Settle changes. Sent again as long as nobody answers, with one key (yours, or one made here): once is
        enough for it to happen, and more does not make it happen twice. With the token of a `lease` of yours, it is
        refused (`LeaseLost`) if you do not hold that any more."""
        body = CommitCreate(
            project=project,
            changes=list(changes),
            base_seq=base_seq,
            epoch=epoch,
            message=message,
            key=key or uuid4().hex,
            atomic=atomic,
            run=run,
            lease=lease,
        )
        return await self._connection.retried(
            lambda: self._connection.call(CommitView, "POST", f"{_COLLAB}/commit", body)
        )

    def lease(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> AbstractAsyncContextManager[HeldLease]:
        """`async with client.lease("p", "src/**"):` a block that has it, renewed in the background. `LeaseHeld` when
        others have it for longer than `wait` seconds."""
        return self.leases.holding(project, pattern, wait=wait, worker=worker)

    async def upload(self, project: str, content: Uploadable, *, content_hash: str | None = None) -> UploadView:
        """Store content of any size, to be named by its hash in a commit. Bytes and files are sent again as long as
        nobody answers; pieces cannot be."""

        async def attempt() -> UploadView:
            return await self._connection.call(
                UploadView, "POST", f"{_COLLAB}/uploads", _pieces(content), project=project, hash=content_hash
            )

        if isinstance(content, bytes | Path):
            return await self._connection.retried(attempt)
        return await attempt()

    async def download(
        self,
        project: str,
        *,
        path: str | None = None,
        seq: int | None = None,
        node_id: UUID | None = None,
        number: int | None = None,
        side_version_id: UUID | None = None,
        start: int = 0,
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a version, in pieces, from `start` on: by path (and seq), by node and number, or of a side
        version. Close it if you stop early (`contextlib.aclosing`)."""
        headers = {"Range": f"bytes={start}-"} if start else None
        async with self._connection.stream(
            f"{_COLLAB}/versions/content",
            headers=headers,
            project=project,
            path=path,
            seq=seq,
            node_id=node_id,
            number=number,
            side_version_id=side_version_id,
        ) as response:
            async for piece in response.aiter_raw():
                yield piece

    async def versions(self, project: str, path: str, *, before: int | None = None, limit: int = 100) -> VersionPage:
        """The versions of the file at a path, newest first."""
        return await self._read(VersionPage, "versions", project=project, path=path, before=before, limit=limit)

    async def side_versions(
        self, project: str, path: str, *, before: UUID | None = None, limit: int = 100
    ) -> SideVersionPage:
        """What lost against the head or waits for a review at a path, newest first."""
        return await self._read(
            SideVersionPage, "versions/sides", project=project, path=path, before=before, limit=limit
        )

    async def log(
        self,
        project: str,
        *,
        path: str | None = None,
        principal: str | None = None,
        run: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> LogPageView:
        """Commits, newest first: of the project, of the file at a path, of a principal or of a run."""
        return await self._read(
            LogPageView, "log", project=project, path=path, principal=principal, run=run, before=before, limit=limit
        )

    async def audit(
        self, project: str, wanted: AuditQuery | None = None, *, before: int | None = None, limit: int = 100
    ) -> AuditPageView:
        """The audit trail, newest first."""
        fields = (wanted or AuditQuery()).model_dump(mode="json")
        return await self._read(AuditPageView, "audit", project=project, before=before, limit=limit, **fields)

    async def export_audit(
        self, project: str, wanted: AuditQuery | None = None
    ) -> AsyncGenerator[AuditRecordView, None]:
        """The whole audit trail, or what matches, oldest first."""
        fields = (wanted or AuditQuery()).model_dump(mode="json")
        async with self._connection.stream(f"{_COLLAB}/audit/export", project=project, **fields) as response:
            async for line in lines_of_async(response):
                try:
                    yield AuditRecordView.model_validate_json(line)
                except ValidationError as error:
                    raise Unavailable("The export broke off in the middle of a row; try again.") from error

    async def _read(self, answer: type[Body], route: str, **query: Any) -> Body:
        return await self._connection.retried(
            lambda: self._connection.call(answer, "GET", f"{_COLLAB}/{route}", **query)
        )


def _segment(name: str) -> str:
    if not re.fullmatch(NAME_OR_ID, name):
        raise InvalidInput(f"{name[:120]!r} is not a project's name or id.")
    return name


async def _pieces(content: Uploadable) -> AsyncIterator[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        with await asyncio.to_thread(content.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                yield piece
    elif isinstance(content, AsyncIterable):
        async for piece in content:
            yield piece
    else:
        pieces = iter(content)
        while (given := await asyncio.to_thread(lambda: next(pieces, None))) is not None:
            yield given
