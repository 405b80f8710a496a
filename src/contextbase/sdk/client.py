"""`Client`: `AsyncClient` for code that is not async. It has no logic of its own."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self
from uuid import UUID

import httpx

from contextbase.sdk.async_client import AsyncClient, Uploadable
from contextbase.sdk.history import History
from contextbase.sdk.leases import DEFAULT_WAIT_SECONDS, HeldLease, Leases
from contextbase.sdk.policies import Policies
from contextbase.sdk.portal import Portal
from contextbase.sdk.reviews import Reviews
from contextbase.sdk.runs import Runs
from contextbase.sdk.sandboxes import Sandboxes
from contextbase.sdk.workspaces import Workspaces
from contextbase.wire.commit import ChangeBody, CommitView, UploadView
from contextbase.wire.history import AuditPageView, AuditQuery, AuditRecordView, LogPageView
from contextbase.wire.project import ProjectDetail, ProjectPage, ProjectView
from contextbase.wire.system import Me, Readiness, ServerVersion
from contextbase.wire.token import TokenCreate, TokenCreated, TokenPage, TokenRevoked
from contextbase.wire.tree import CheckoutView, SideVersionPage, VersionPage

__all__ = ["Client"]


class Client:
    """A connection to one server as one principal. Use it as a context manager, or `close` it.

    Every method is `AsyncClient`'s of the same name; what that yields, this one's iterators do."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_seconds: float = 30.0,
        attempts: int = 6,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = AsyncClient(url, token, timeout_seconds=timeout_seconds, attempts=attempts, transport=transport)
        self._portal = Portal()
        self.policies = Policies(self._client.policies, self._portal)
        self.history = History(self._client.history, self._portal)
        self.reviews = Reviews(self._client.reviews, self._portal)
        self.workspaces = Workspaces(self._client.workspaces, self._portal)
        self.runs = Runs(self._client.runs, self._portal)
        self.sandboxes = Sandboxes(self._client.sandboxes, self._portal)
        self.leases = Leases(self._client.leases, self._portal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._portal.run(self._client.close())
        self._portal.close()

    def version(self) -> ServerVersion:
        return self._portal.run(self._client.version())

    def me(self) -> Me:
        return self._portal.run(self._client.me())

    def readiness(self) -> Readiness:
        return self._portal.run(self._client.readiness())

    def create_project(self, name: str, *, description: str = "") -> ProjectView:
        return self._portal.run(self._client.create_project(name, description=description))

    def projects(self, *, after: str = "", limit: int = 100) -> ProjectPage:
        return self._portal.run(self._client.projects(after=after, limit=limit))

    def project(self, name_or_id: str) -> ProjectDetail:
        return self._portal.run(self._client.project(name_or_id))

    def delete_project(self, name_or_id: str) -> ProjectView:
        return self._portal.run(self._client.delete_project(name_or_id))

    def create_token(self, request: TokenCreate) -> TokenCreated:
        return self._portal.run(self._client.create_token(request))

    def tokens(self, *, before: UUID | None = None, limit: int = 100) -> TokenPage:
        return self._portal.run(self._client.tokens(before=before, limit=limit))

    def revoke_token(self, token_id: UUID) -> TokenRevoked:
        return self._portal.run(self._client.revoke_token(token_id))

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

    def versions(self, project: str, path: str, *, before: int | None = None, limit: int = 100) -> VersionPage:
        return self._portal.run(self._client.versions(project, path, before=before, limit=limit))

    def side_versions(
        self, project: str, path: str, *, before: UUID | None = None, limit: int = 100
    ) -> SideVersionPage:
        return self._portal.run(self._client.side_versions(project, path, before=before, limit=limit))

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
        self, project: str, wanted: AuditQuery | None = None, *, before: int | None = None, limit: int = 100
    ) -> AuditPageView:
        return self._portal.run(self._client.audit(project, wanted, before=before, limit=limit))

    def export_audit(self, project: str, wanted: AuditQuery | None = None) -> Iterator[AuditRecordView]:
        return self._portal.iterate(self._client.export_audit(project, wanted))
