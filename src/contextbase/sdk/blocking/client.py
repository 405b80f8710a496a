# Generated from aio/client.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""`AsyncClient`: the server's routes as methods. Answers are the wire models; errors are the tree of errors.py."""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack
from uuid import UUID, uuid4

import httpx
from pydantic import ValidationError

from contextbase.errors import Unavailable
from contextbase.sdk.arguments import checked, input_checked
from contextbase.sdk.blocking.app_files import AppFiles
from contextbase.sdk.blocking.app_settings import AppSettings
from contextbase.sdk.blocking.apps import Apps
from contextbase.sdk.blocking.commands import Commands
from contextbase.sdk.blocking.connection import DEFAULT_RETRY_SECONDS, DEFAULT_TIMEOUT_SECONDS, Connection
from contextbase.sdk.blocking.events import Events
from contextbase.sdk.blocking.feed import Feed
from contextbase.sdk.blocking.files import Files
from contextbase.sdk.blocking.history import History
from contextbase.sdk.blocking.installed_agents import InstalledAgents
from contextbase.sdk.blocking.leases import DEFAULT_WAIT_SECONDS, Leases
from contextbase.sdk.blocking.lines import lines_of
from contextbase.sdk.blocking.machines import Machines
from contextbase.sdk.blocking.models import Models
from contextbase.sdk.blocking.people import Departments, Roles, Users
from contextbase.sdk.blocking.policies import Policies
from contextbase.sdk.blocking.projects import Projects
from contextbase.sdk.blocking.reviews import Reviews
from contextbase.sdk.blocking.sandboxes import Sandboxes
from contextbase.sdk.blocking.search import Search
from contextbase.sdk.blocking.session_shares import SessionShares
from contextbase.sdk.blocking.sessions import Sessions
from contextbase.sdk.blocking.tokens import Tokens
from contextbase.sdk.blocking.uploads import Uploadable, check_uploadable, pieces_of
from contextbase.sdk.blocking.workspaces import Workspaces
from contextbase.sdk.handles import HeldLease
from contextbase.sdk.http import Body, parsed
from contextbase.sdk.options import AuditFilter
from contextbase.wire.commit import ChangeBody, CommitCreate, CommitView, UploadView
from contextbase.wire.history import AuditPageView, AuditQuery, AuditRecordView, LogPageView
from contextbase.wire.system import ExaminationView, Me, Readiness, ServerVersion
from contextbase.wire.tree import CheckoutRequest, CheckoutView, SideVersionPage, VersionPage

__all__ = ["Client"]

_API: Final = "/api/v1"


class Client:
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(
            url, token, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds, transport=transport
        )
        self.projects = Projects(self._connection)
        self.tokens = Tokens(self._connection)
        self.policies = Policies(self._connection)
        self.users = Users(self._connection)
        self.departments = Departments(self._connection)
        self.roles = Roles(self._connection)
        self.models = Models(self._connection)
        self.files = Files(self._connection)
        self.history = History(self._connection)
        self.search = Search(self._connection)
        self.reviews = Reviews(self._connection)
        self.workspaces = Workspaces(self._connection)
        self.commands = Commands(self._connection)
        self.sandboxes = Sandboxes(self._connection, self.workspaces)
        self.sessions = Sessions(self._connection)
        self.session_shares = SessionShares(self._connection)
        self.agents = InstalledAgents(self._connection)
        self.apps = Apps(self._connection)
        self.app_files = AppFiles(self._connection)
        self.app_settings = AppSettings(self._connection)
        self.leases = Leases(self._connection)
        self.events = Events(self._connection)
        self.feed = Feed(self._connection)
        self.machines = Machines(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Every later call raises `InvalidInput`; closing again does nothing."""
        self._connection.close()

    def version(self) -> ServerVersion:
        """The server's version."""
        return self._connection.call(ServerVersion, "GET", "/api/v1/version")

    def me(self) -> Me:
        """Whom the token is for, and what it allows."""
        return self._connection.call(Me, "GET", "/api/v1/me")

    def readiness(self) -> Readiness:
        """Whether the server and its parts are ready. A part that is not is an answer, not an error."""
        return parsed(Readiness, self._connection.send("GET", "/readyz"))

    def doctor(self) -> ExaminationView:
        """What works on the server's machine and what does not, with what to do about it. Needs 'admin' of all
        projects. Raises `Unavailable` when the checks take longer than 20 seconds."""
        return self._connection.call(ExaminationView, "GET", f"{_API}/system/doctor")

    @checked
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
        return self._connection.retried(lambda: self._connection.call(CheckoutView, "POST", f"{_API}/checkouts", body))

    @checked
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
        return self._connection.retried(
            lambda: self._connection.call(CommitView, "POST", f"{_API}/commits", body, headers=headers)
        )

    def lease(
        self, project: str, pattern: str, *, wait: float = DEFAULT_WAIT_SECONDS, worker: str | None = None
    ) -> AbstractContextManager[HeldLease]:
        """Hold a lease for a block, renewed in the background: `with client.lease("p", "src/**") as lease:`

        Raises `LeaseHeld` if somebody else keeps it for longer than `wait` seconds. `worker` tells apart several
        workers of one principal."""
        return self.leases.holding(project, pattern, wait=wait, worker=worker)

    def upload(self, project: str, content: Uploadable, *, content_hash: str | None = None) -> UploadView:
        """Store content of any size; a commit then names it by the `hash` of the answer.

        Bytes and files are sent again when the server does not answer; pieces cannot be. With `content_hash`, raises
        `InvalidInput` if the content received has another sha256. Raises `TooLarge` over the server's limit."""
        check_uploadable(content)

        def attempt() -> UploadView:
            return self._connection.call(
                UploadView, "POST", f"{_API}/uploads", pieces_of(content), project=project, hash=content_hash
            )

        if isinstance(content, bytes | Path):
            return self._connection.retried(attempt)
        return attempt()

    @checked
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
    ) -> Generator[bytes, None, None]:
        """The bytes of a version, in pieces, from `start` on: by path (and seq), by node and number, or of a side
        version. Close it if you stop early (`contextlib.closing`). Raises `ContentPurged` for content that was
        removed from all history."""
        headers = {"Range": f"bytes={start}-"} if start else None
        with self._connection.stream(
            f"{_API}/versions/content",
            headers=headers,
            project=project,
            path=path,
            seq=seq,
            node_id=node_id,
            number=number,
            side_version_id=side_version_id,
        ) as response:
            for piece in response.iter_raw():
                yield piece

    @checked
    def list_versions(self, project: str, path: str, *, before: int | None = None, limit: int = 100) -> VersionPage:
        """The versions of the file at a path, newest first. Pass the page's `next_before` for the next page."""
        return self._read(VersionPage, "versions", project=project, path=path, before=before, limit=limit)

    @checked
    def list_side_versions(
        self, project: str, path: str, *, before: UUID | None = None, limit: int = 100
    ) -> SideVersionPage:
        """What lost against the head or waits for a review at a path, newest first."""
        return self._read(SideVersionPage, "versions/sides", project=project, path=path, before=before, limit=limit)

    @checked
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
        """Commits, newest first: of the project, of the file at a path, of a principal or of a run. Pass the page's
        `next_before` for the next page."""
        return self._read(
            LogPageView, "commits", project=project, path=path, principal=principal, run=run, before=before, limit=limit
        )

    @checked
    def audit(
        self, project: str | None, *, before: int | None = None, limit: int = 100, **wanted: Unpack[AuditFilter]
    ) -> AuditPageView:
        """The audit trail, newest first; None: the system's own. Needs a token that allows 'admin'. Pass the page's
        `next_before` for the next page."""
        fields = _query(wanted)
        return self._connection.read(
            AuditPageView, _trail_of(project), project=project, before=before, limit=limit, **fields
        )

    @checked
    def export_audit(
        self, project: str | None, **wanted: Unpack[AuditFilter]
    ) -> Generator[AuditRecordView, None, None]:
        """The whole audit trail, or what matches, oldest first; None: the system's own. Needs a token that allows
        'admin'."""
        with self._connection.stream(f"{_trail_of(project)}/export", project=project, **_query(wanted)) as response:
            for line in lines_of(response):
                try:
                    yield AuditRecordView.model_validate_json(line)
                except ValidationError as error:
                    raise Unavailable("The export broke off in the middle of a row; try again.") from error

    def _read(self, answer: type[Body], route: str, **query: Any) -> Body:
        return self._connection.read(answer, f"{_API}/{route}", **query)


def _query(wanted: AuditFilter) -> dict[str, Any]:
    with input_checked("audit"):
        return AuditQuery.model_validate(wanted).model_dump(mode="json")


def _trail_of(project: str | None) -> str:
    return "/api/v1/system/audit" if project is None else f"{_API}/audit"
