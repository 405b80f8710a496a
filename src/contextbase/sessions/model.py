"""Sessions, runs and workers as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NewType
from uuid import UUID

from contextbase.agent_vocabulary import ExecutionProfile
from contextbase.audit.model import WayIn
from contextbase.errors import InvalidInput, TooLarge
from contextbase.identity.model import Action, Caller, Grant, GrantSource, Principal
from contextbase.ids import ContentHash, ProjectId, TreePath
from contextbase.vocabulary import Land, QueueState, RunState, SendMode, SessionState, SyncStatus, WorkerState
from contextbase.wire.agent_config import WorkspaceKind
from contextbase.workspaces.model import NamedWorkspace

__all__ = [
    "LONGEST_PROMPT_BYTES",
    "AgentRun",
    "AgentSession",
    "ClaimedRun",
    "Land",
    "QueuePlace",
    "QueueState",
    "RunFacts",
    "RunId",
    "RunWishes",
    "SessionId",
    "SessionRequest",
    "SessionState",
    "SessionWorker",
    "StoredAttachment",
    "SyncStatus",
    "WorkerState",
    "check_title",
    "checked_prompt",
]

SessionId = NewType("SessionId", UUID)
RunId = NewType("RunId", UUID)

LONGEST_PROMPT_BYTES: Final = 256 * 1024
_LONGEST_TITLE: Final = 200
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRequest:
    """A session somebody asks for; checked when it is built."""

    project_id: ProjectId
    folder: TreePath | None = None
    provider: str
    model: str | None = None
    land: Land = Land.AUTO
    profile: ExecutionProfile = ExecutionProfile.DEFAULT
    title: str = ""
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, name in (("provider", self.provider), ("model", self.model)):
            if name is not None and not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
                raise InvalidInput(f"The name of a {what} has 1 to {_LONGEST_NAME} printable characters.")
        check_title(self.title)


def check_title(title: str) -> None:
    if len(title) > _LONGEST_TITLE or (title and not title.isprintable()):
        raise InvalidInput(f"A session's title has at most {_LONGEST_TITLE} printable characters.")


def checked_prompt(prompt: str) -> str:
    if not prompt.strip():
        raise InvalidInput("The message is empty; say what the agent should do.")
    if "\0" in prompt:
        raise InvalidInput("The message has a NUL character; leave it out.")
    try:
        size = len(prompt.encode())
    except UnicodeEncodeError:
        raise InvalidInput("The message has half of a surrogate pair, which is no character.") from None
    if size > LONGEST_PROMPT_BYTES:
        raise TooLarge(f"The message has {size} bytes; {LONGEST_PROMPT_BYTES} is the most. Put the rest into a file.")
    return prompt


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSession:
    id: SessionId
    owner: Principal
    agent: Principal  # `agent:session-…`, who works on the owner's behalf
    project_id: ProjectId
    folder: TreePath | None
    actions: frozenset[Action]
    provider: str
    model: str | None
    options: Mapping[str, object]
    land: Land
    profile: ExecutionProfile
    title: str
    pinned: bool
    state: SessionState
    sdk_session_ids: Mapping[str, str]  # the CLI's own id of the conversation, by provider
    last_run: int
    chat_id: str | None  # what the client calls it, if a chat client made it
    created_at: datetime
    updated_at: datetime
    last_active_at: datetime
    forked_from: SessionId | None = None
    app: str | None = None  # that composes it, by name; None: it works in a project
    workspace_kind: WorkspaceKind = WorkspaceKind.FOLDER

    @property
    def has_container(self) -> bool:
        """Whether its workspace is a container's own."""
        return self.workspace_kind is WorkspaceKind.CONTAINER

    @property
    def workspace(self) -> NamedWorkspace:
        """The one its agent has."""
        return NamedWorkspace(self.project_id)

    def options_for(self, provider: str) -> Mapping[str, object]:
        """They are for the session's own program."""
        return self.options if provider == self.provider else {}

    def caller(self) -> Caller:
        """The session's agent at work: with what the owner granted, and never more than the owner may."""
        grant = Grant(source=GrantSource.RUN, actions=self.actions, project_id=self.project_id, path_prefix=self.folder)
        return Caller(
            principal=self.agent, grant=grant, way_in=WayIn.AGENT, on_behalf_of=self.owner, origin=f"session:{self.id}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionWorker:
    session_id: SessionId
    machine: str | None
    container_id: str | None
    workspace_s3_prefix: str
    state: WorkerState
    desired_state: WorkerState
    executor_version: str | None
    last_active_at: datetime
    stopped_at: datetime | None
    last_sync_at: datetime | None
    last_sync_status: SyncStatus
    last_sync_error: str | None
    sync_requested_at: datetime | None
    lost_at: datetime | None
    alert: str | None  # what people must look at

    @property
    def sync_is_due(self) -> bool:
        asked, done = self.sync_requested_at, self.last_sync_at
        return asked is not None and (done is None or done < asked)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuePlace:
    """Where a run stands in the queue."""

    state: QueueState
    ahead: int  # runs that are claimed before it, as things stand
    priority: int
    parked_reason: str | None
    attempts: int
    last_error: str | None
    queued_at: datetime
    claimed_by: str | None
    lease_until: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    id: RunId
    session_id: SessionId
    number: int
    prompt: str
    provider: str
    model: str | None
    profile: str
    options: Mapping[str, object]  # for the agent program, beside those of the session
    state: RunState
    state_at: datetime
    attempt: int
    machine: str | None
    reason: str | None
    message: str | None
    runtime_version: str | None
    image: str | None
    cli_version: str | None
    phases: Mapping[str, int]
    landed: Mapping[str, object] | None
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    rewound_at: datetime | None  # the conversation went back behind it
    mode: SendMode

    @property
    def is_canceled(self) -> bool:
        """Whether somebody wants it to end."""
        return self.cancel_requested_at is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedRun:
    """What a machine gets to work on."""

    run: AgentRun
    session: AgentSession
    lease_until: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAttachment:
    """A file that comes with a message; its content is in the blob store."""

    name: str
    media_type: str
    hash: ContentHash
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunWishes:
    """How one message is worked on; None: as the session says."""

    provider: str | None = None
    model: str | None = None
    profile: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    mode: SendMode = SendMode.QUEUE
    attachments: tuple[StoredAttachment, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What a machine learned about a run; None: nothing new."""

    reason: str | None = None
    message: str | None = None
    runtime_version: str | None = None
    image: str | None = None
    cli_version: str | None = None
    landed: Mapping[str, object] | None = None
