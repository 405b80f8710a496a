"""`Client`: `AsyncClient` for code that is not async. It has no logic of its own."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, Self, Unpack
from uuid import UUID

import httpx

from contextbase.sdk.arguments import documented_like
from contextbase.sdk.async_client import AsyncClient, AuditFilter, Uploadable
from contextbase.sdk.commands import Commands
from contextbase.sdk.connection import DEFAULT_RETRY_SECONDS, DEFAULT_TIMEOUT_SECONDS
from contextbase.sdk.events import Events
from contextbase.sdk.history import History
from contextbase.sdk.leases import DEFAULT_WAIT_SECONDS, HeldLease, Leases
from contextbase.sdk.policies import Policies
from contextbase.sdk.portal import Portal
from contextbase.sdk.projects import Projects
from contextbase.sdk.reviews import Reviews
from contextbase.sdk.sandboxes import Sandboxes
from contextbase.sdk.tokens import Tokens
from contextbase.sdk.workspaces import Workspaces
from contextbase.wire.commit import ChangeBody, CommitView, UploadView
from contextbase.wire.history import AuditPageView, AuditRecordView, LogPageView
from contextbase.wire.system import Me, Readiness, ServerVersion
from contextbase.wire.tree import CheckoutView, SideVersionPage, VersionPage

__all__ = ["Client"]


@documented_like(AsyncClient)
class Client:
    """A connection to one server as one principal. Use it as a context manager, or `close` it.

    `url` and `token` default to the environment variables CONTEXTBASE_URL and CONTEXTBASE_TOKEN, and without those to
    the server that the command line would talk to. Arguments, retries and errors are `AsyncClient`'s, and so is every
    method: where that one yields, this one's iterators do. It may be used from several threads, and where an event loop
    runs already."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        retry_seconds: float = DEFAULT_RETRY_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = AsyncClient(
            url, token, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds, transport=transport
        )
        self._portal = Portal()
        self.projects = Projects(self._client.projects, self._portal)
        self.tokens = Tokens(self._client.tokens, self._portal)
        self.policies = Policies(self._client.policies, self._portal)
        self.history = History(self._client.history, self._portal)
        self.reviews = Reviews(self._client.reviews, self._portal)
        self.workspaces = Workspaces(self._client.workspaces, self._portal)
        self.commands = Commands(self._client.commands, self._portal)
        self.sandboxes = Sandboxes(self._client.sandboxes, self._portal)
        self.leases = Leases(self._client.leases, self._portal)
        self.events = Events(self._client.events, self._portal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._portal.is_closed:
            return
        self._portal.run(self._client.close())
        self._portal.close()

    def version(self) -> ServerVersion:
        return self._portal.run(self._client.version())

    def me(self) -> Me:
        return self._portal.run(self._client.me())

    def readiness(self) -> Readiness:
        return self._portal.run(self._client.readiness())

    def checkout(
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
        return self._portal.run(
            self._client.checkout(
                project,
                paths=paths,
                prefix=prefix,
                recursive=recursive,
                seq=seq,
                epoch=epoch,
                contents=contents,
                after=after,
                limit=limit,
            )
        )

    def commit(
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
        if_match: str | None = None,
        if_none_match: Literal["*"] | None = None,
    ) -> CommitView:
        return self._portal.run(
            self._client.commit(
                project,
                changes,
                base_seq=base_seq,
                epoch=epoch,
                message=message,
                key=key,
                atomic=atomic,
                run=run,
                lease=lease,
                if_match=if_match,
                if_none_match=if_none_match,
            )
        )

    def lease(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> AbstractContextManager[HeldLease]:
        return self.leases.holding(project, pattern, wait=wait, worker=worker)

    def upload(self, project: str, content: Uploadable, *, content_hash: str | None = None) -> UploadView:
        return self._portal.run(self._client.upload(project, content, content_hash=content_hash))

    def download(
        self,
        project: str,
        *,
        path: str | None = None,
        seq: int | None = None,
        node_id: UUID | None = None,
        number: int | None = None,
        side_version_id: UUID | None = None,
        start: int = 0,
    ) -> Iterator[bytes]:
        return self._portal.iterate(
            self._client.download(
                project,
                path=path,
                seq=seq,
                node_id=node_id,
                number=number,
                side_version_id=side_version_id,
                start=start,
            )
        )

    def list_versions(self, project: str, path: str, *, before: int | None = None, limit: int = 100) -> VersionPage:
        return self._portal.run(self._client.list_versions(project, path, before=before, limit=limit))

    def list_side_versions(
        self, project: str, path: str, *, before: UUID | None = None, limit: int = 100
    ) -> SideVersionPage:
        return self._portal.run(self._client.list_side_versions(project, path, before=before, limit=limit))

    def log(
        self,
        project: str,
        *,
        path: str | None = None,
        principal: str | None = None,
        run: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> LogPageView:
        return self._portal.run(
            self._client.log(project, path=path, principal=principal, run=run, before=before, limit=limit)
        )

    def audit(
        self, project: str | None, *, before: int | None = None, limit: int = 100, **wanted: Unpack[AuditFilter]
    ) -> AuditPageView:
        return self._portal.run(self._client.audit(project, before=before, limit=limit, **wanted))

    def export_audit(self, project: str | None, **wanted: Unpack[AuditFilter]) -> Iterator[AuditRecordView]:
        return self._portal.iterate(self._client.export_audit(project, **wanted))
