"""`AsyncClient`: the server's routes as methods. Answers are the wire models; errors are the tree of errors.py."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack
from uuid import UUID, uuid4

import httpx
from pydantic import ValidationError

from contextbase.errors import Unavailable
from contextbase.sdk.aio.app_files import AsyncAppFiles
from contextbase.sdk.aio.app_settings import AsyncAppSettings
from contextbase.sdk.aio.apps import AsyncApps
from contextbase.sdk.aio.commands import AsyncCommands
from contextbase.sdk.aio.connection import DEFAULT_RETRY_SECONDS, DEFAULT_TIMEOUT_SECONDS, AsyncConnection
from contextbase.sdk.aio.events import AsyncEvents
from contextbase.sdk.aio.feed import AsyncFeed
from contextbase.sdk.aio.files import AsyncFiles
from contextbase.sdk.aio.history import AsyncHistory
from contextbase.sdk.aio.installed_agents import AsyncInstalledAgents
from contextbase.sdk.aio.leases import DEFAULT_WAIT_SECONDS, AsyncLeases
from contextbase.sdk.aio.lines import lines_of
from contextbase.sdk.aio.machines import AsyncMachines
from contextbase.sdk.aio.models import AsyncModels
from contextbase.sdk.aio.people import AsyncDepartments, AsyncRoles, AsyncUsers
from contextbase.sdk.aio.policies import AsyncPolicies
from contextbase.sdk.aio.projects import AsyncProjects
from contextbase.sdk.aio.reviews import AsyncReviews
from contextbase.sdk.aio.sandboxes import AsyncSandboxes
from contextbase.sdk.aio.search import AsyncSearch
from contextbase.sdk.aio.session_shares import AsyncSessionShares
from contextbase.sdk.aio.sessions import AsyncSessions
from contextbase.sdk.aio.tokens import AsyncTokens
from contextbase.sdk.aio.uploads import AsyncUploadable, check_uploadable, pieces_of
from contextbase.sdk.aio.workspaces import AsyncWorkspaces
from contextbase.sdk.arguments import checked, input_checked
from contextbase.sdk.handles import HeldLease
from contextbase.sdk.http import Body, parsed
from contextbase.sdk.options import AuditFilter
from contextbase.wire.commit import ChangeBody, CommitCreate, CommitView, UploadView
from contextbase.wire.history import AuditPageView, AuditQuery, AuditRecordView, LogPageView
from contextbase.wire.system import ExaminationView, Me, Readiness, ServerVersion
from contextbase.wire.tree import CheckoutRequest, CheckoutView, SideVersionPage, VersionPage

__all__ = ["AsyncClient"]

_API: Final = "/api/v1"


class AsyncClient:
    """A connection to one server as one principal. Use it as a context manager, or `close` it. `Client` and
    `AsyncClient` have the same methods; a `Client` may be used from several threads.

    `url` and `token` default to the environment variables CONTEXTBASE_URL and CONTEXTBASE_TOKEN, and without those to
    the server that the command line would talk to. A request waits `timeout_seconds` for an answer. Reads, commits and
    uploads of bytes or files are sent again for up to `retry_seconds` (0: never) while the server does not answer or
    is busy; a commit carries an idempotency key, so that it happens once.

    Every method raises a `ContextbaseError`, with a stable `code` and a `message` for people:
    `InvalidInput` (a wrong argument, or a closed client), `Unauthenticated` (a missing, unknown, expired or revoked
    token), `Forbidden` (the token or a policy does not allow it), `NotFound` (nothing there that you may see),
    `Unavailable` (no answer, or the server is too busy) and `Misconfigured` (TLS fails, or the answer is not
    contextbase's). What else a method raises is said there."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        retry_seconds: float = DEFAULT_RETRY_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = AsyncConnection(
            url, token, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds, transport=transport
        )
        self.projects = AsyncProjects(self._connection)
        self.tokens = AsyncTokens(self._connection)
        self.policies = AsyncPolicies(self._connection)
        self.users = AsyncUsers(self._connection)
        self.departments = AsyncDepartments(self._connection)
        self.roles = AsyncRoles(self._connection)
        self.models = AsyncModels(self._connection)
        self.files = AsyncFiles(self._connection)
        self.history = AsyncHistory(self._connection)
        self.search = AsyncSearch(self._connection)
        self.reviews = AsyncReviews(self._connection)
        self.workspaces = AsyncWorkspaces(self._connection)
        self.commands = AsyncCommands(self._connection)
        self.sandboxes = AsyncSandboxes(self._connection, self.workspaces)
        self.sessions = AsyncSessions(self._connection)
        self.session_shares = AsyncSessionShares(self._connection)
        self.agents = AsyncInstalledAgents(self._connection)
        self.apps = AsyncApps(self._connection)
        self.app_files = AsyncAppFiles(self._connection)
        self.app_settings = AsyncAppSettings(self._connection)
        self.leases = AsyncLeases(self._connection)
        self.events = AsyncEvents(self._connection)
        self.feed = AsyncFeed(self._connection)
        self.machines = AsyncMachines(self._connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Every later call raises `InvalidInput`; closing again does nothing."""
        await self._connection.close()

    async def version(self) -> ServerVersion:
        """The server's version."""
        return await self._connection.call(ServerVersion, "GET", "/api/v1/version")

    async def me(self) -> Me:
        """Whom the token is for, and what it allows."""
        return await self._connection.call(Me, "GET", "/api/v1/me")

    async def readiness(self) -> Readiness:
        """Whether the server and its parts are ready. A part that is not is an answer, not an error."""
        return parsed(Readiness, await self._connection.send("GET", "/readyz"))

    async def doctor(self) -> ExaminationView:
        """What works on the server's machine and what does not, with what to do about it. Needs 'admin' of all
        projects. Raises `Unavailable` when the checks take longer than 20 seconds."""
        return await self._connection.call(ExaminationView, "GET", f"{_API}/system/doctor")

    @checked
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
        """Read the entries at `paths`, or all below `prefix` (None: everything), in a snapshot (`seq`; None: the head).

        With `contents`, an entry's content is in `text`, or in `base64` if it is not text; both are None for folders
        and for what is too large (use `download`). Paths where there is nothing you may read are in `missing`. The
        answer's `seq` is the `base_seq` of a commit that you make from it, and the `seq` of the next page (`after`).
        Pass `epoch` along with `seq`: if the project was restored in between, that raises `CursorOutdated`."""
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
            lambda: self._connection.call(CheckoutView, "POST", f"{_API}/checkouts", body)
        )

    @checked
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
        if_match: str | None = None,
        if_none_match: Literal["*"] | None = None,
    ) -> CommitView:
        """Commit changes that were made from the snapshot `base_seq`. What others changed since is merged.

        Look at each change's `status`: `written`, `merged` and `unchanged` are in the project now; `in_review` waits
        for a person, `superseded` lost against another version (both are kept), and `refused` has a `code` and a
        `reason`. With `atomic`, either all changes go in or all are `refused`. `key`: sending the same commit with the
        same key again has no further effect. `run`: a name of yours by which the work can be undone.
        `lease`: raises `LeaseLost` if you do not hold the lease with this token any more. `if_match`: the ETag (the
        sha256 in quotes) that the file of a single change must have; `if_none_match="*"`: there must be no file. Else
        it raises `PreconditionFailed`. Raises `CursorOutdated` if `epoch` is not the project's, and `TooLarge` for
        more content than a request may carry (use `upload`)."""
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
        asked = {"If-Match": if_match, "If-None-Match": if_none_match}
        headers = {name: value for name, value in asked.items() if value is not None}
        return await self._connection.retried(
            lambda: self._connection.call(CommitView, "POST", f"{_API}/commits", body, headers=headers)
        )

    def lease(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> AbstractAsyncContextManager[HeldLease]:
        """Hold a lease for a block, renewed in the background: `async with client.lease("p", "src/**") as lease:`

        Raises `LeaseHeld` if somebody else keeps it for longer than `wait` seconds. `worker` tells apart several
        workers of one principal."""
        return self.leases.holding(project, pattern, wait=wait, worker=worker)

    async def upload(self, project: str, content: AsyncUploadable, *, content_hash: str | None = None) -> UploadView:
        """Store content of any size; a commit then names it by the `hash` of the answer.

        Bytes and files are sent again when the server does not answer; pieces cannot be. With `content_hash`, raises
        `InvalidInput` if the content received has another sha256. Raises `TooLarge` over the server's limit."""
        check_uploadable(content)

        async def attempt() -> UploadView:
            return await self._connection.call(
                UploadView, "POST", f"{_API}/uploads", pieces_of(content), project=project, hash=content_hash
            )

        if isinstance(content, bytes | Path):
            return await self._connection.retried(attempt)
        return await attempt()

    @checked
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
        version. Close it if you stop early (`contextlib.aclosing`). Raises `ContentPurged` for content that was
        removed from all history."""
        headers = {"Range": f"bytes={start}-"} if start else None
        async with self._connection.stream(
            f"{_API}/versions/content",
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

    @checked
    async def list_versions(
        self, project: str, path: str, *, before: int | None = None, limit: int = 100
    ) -> VersionPage:
        """The versions of the file at a path, newest first. Pass the page's `next_before` for the next page."""
        return await self._read(VersionPage, "versions", project=project, path=path, before=before, limit=limit)

    @checked
    async def list_side_versions(
        self, project: str, path: str, *, before: UUID | None = None, limit: int = 100
    ) -> SideVersionPage:
        """What lost against the head or waits for a review at a path, newest first."""
        return await self._read(
            SideVersionPage, "versions/sides", project=project, path=path, before=before, limit=limit
        )

    @checked
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
        """Commits, newest first: of the project, of the file at a path, of a principal or of a run. Pass the page's
        `next_before` for the next page."""
        return await self._read(
            LogPageView, "commits", project=project, path=path, principal=principal, run=run, before=before, limit=limit
        )

    @checked
    async def audit(
        self, project: str | None, *, before: int | None = None, limit: int = 100, **wanted: Unpack[AuditFilter]
    ) -> AuditPageView:
        """The audit trail, newest first; None: the system's own. Needs a token that allows 'admin'. Pass the page's
        `next_before` for the next page."""
        fields = _query(wanted)
        return await self._connection.read(
            AuditPageView, _trail_of(project), project=project, before=before, limit=limit, **fields
        )

    @checked
    async def export_audit(
        self, project: str | None, **wanted: Unpack[AuditFilter]
    ) -> AsyncGenerator[AuditRecordView, None]:
        """The whole audit trail, or what matches, oldest first; None: the system's own. Needs a token that allows
        'admin'."""
        async with self._connection.stream(
            f"{_trail_of(project)}/export", project=project, **_query(wanted)
        ) as response:
            async for line in lines_of(response):
                try:
                    yield AuditRecordView.model_validate_json(line)
                except ValidationError as error:
                    raise Unavailable("The export broke off in the middle of a row; try again.") from error

    async def _read(self, answer: type[Body], route: str, **query: Any) -> Body:
        return await self._connection.read(answer, f"{_API}/{route}", **query)


def _query(wanted: AuditFilter) -> dict[str, Any]:
    with input_checked("audit"):
        return AuditQuery.model_validate(wanted).model_dump(mode="json")


def _trail_of(project: str | None) -> str:
    return "/api/v1/system/audit" if project is None else f"{_API}/audit"
