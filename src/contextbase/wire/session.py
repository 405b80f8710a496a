"""Bodies of sessions with agents: sessions, runs, messages, what agents did, and what became of it."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Base64Bytes, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from contextbase.agent_vocabulary import ExecutionProfile, SessionAccessLevel
from contextbase.vocabulary import (
    ChangeStatus,
    Land,
    LandingState,
    MessagePartKind,
    MessageRole,
    MessageState,
    QueueState,
    RunState,
    SendMode,
    SessionState,
    SyncStatus,
    ToolStatus,
    WorkerState,
)
from contextbase.wire.agent_config import AgentConfig
from contextbase.wire.answer import AnswerView
from contextbase.wire.app import APP_NAME
from contextbase.wire.commit import ProjectName
from contextbase.wire.feed import EventItem
from contextbase.wire.manifest import RUNTIME_VERSION

__all__ = [
    "IDEMPOTENCY_KEY",
    "AttachmentCreate",
    "LandedPath",
    "LandingView",
    "MessagePage",
    "MessagePartView",
    "MessageView",
    "OpenedSessionView",
    "QueuePlaceView",
    "RewoundRun",
    "RunCreate",
    "RunEndItem",
    "RunEventPage",
    "RunItem",
    "RunPage",
    "RunUsageView",
    "RunView",
    "RuntimeVersionPin",
    "SessionCreate",
    "SessionFork",
    "SessionPage",
    "SessionRewind",
    "SessionRewoundView",
    "SessionView",
    "SessionWorkerView",
    "ToolExecutionPage",
    "ToolExecutionView",
]

IDEMPOTENCY_KEY = r"^[!-~]+$"

# Principals and paths are objects in the server, and text here.
Text = Annotated[str, BeforeValidator(str)]
OptionalText = Annotated[str | None, BeforeValidator(lambda value: None if value is None else str(value))]


class SessionCreate(BaseModel):
    """In a project, or composed by an app: one of both is named."""

    model_config = ConfigDict(extra="forbid")

    project: ProjectName | None = None
    app: Annotated[str, Field(pattern=APP_NAME)] | None = Field(
        None,
        description="Its configuration says what agent works, and how; `folder`, `land` and `options` are its own.",
    )
    app_project: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] | None = Field(
        None, description="A project of the app; null: default."
    )
    runtime_version: Annotated[str, Field(pattern=RUNTIME_VERSION)] | None = Field(
        None, description="The app's manifest to compose it of; null: the latest, before each run."
    )
    overrides: AgentConfig | None = Field(None, description="The last layer of the app's configuration.")
    provider: str | None = Field(
        None,
        description="The agent program, such as claude; null: the first that is installed. `GET /api/v1/agents` lists "
        "them.",
        min_length=1,
        max_length=200,
    )
    model: str | None = Field(
        None, description="Null: the server's.", min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$"
    )
    folder: str | None = Field(
        None, description="The part of the project that the agent works in; null: all.", max_length=2048
    )
    land: Land = Field(Land.AUTO, description="What becomes of a run's changes when it succeeds.")
    profile: ExecutionProfile = Field(
        ExecutionProfile.DEFAULT,
        description="`ask`: a person permits each tool that changes something. `plan`: the agent only makes a plan.",
    )
    title: str = Field("", description="Empty: the first words of the first message.", max_length=200)
    options: dict[str, Any] = Field(
        {}, description="For the agent program; `GET /api/v1/agents` lists them.", max_length=100
    )

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if (self.project is None) == (self.app is None):
            raise ValueError("name a project or an app, and not both")
        for_apps = (self.app_project, self.runtime_version, self.overrides)
        if self.app is None and any(value is not None for value in for_apps):
            raise ValueError("app_project, runtime_version and overrides are for sessions of an app")
        if self.app is not None and (self.folder or self.options or self.provider or self.model):
            raise ValueError("a session of an app gets provider and model from its configuration: use overrides")
        return self


class RuntimeVersionPin(BaseModel):
    model_config = ConfigDict(extra="forbid")

    runtime_version: Annotated[str, Field(pattern=RUNTIME_VERSION)] | None = Field(
        description="Null: the latest, before each run."
    )


class SessionView(AnswerView):
    id: UUID
    owner: Text = Field(description="Who made it, such as user:ann: others see it if it is shared.")
    agent: Text = Field(description="Who works in it, on the owner's behalf.")
    project_id: UUID
    folder: OptionalText = Field(description="The part of the project that the agent works in; null: all.")
    provider: str
    model: str | None = Field(description="Null: the server's.")
    land: Land
    profile: ExecutionProfile = Field(description="Of runs that name none.")
    title: str
    pinned: bool = Field(description="Its worker is not stopped for being idle.")
    app: str | None = Field(None, description="That composes it; null: it works in a project.")
    state: SessionState
    last_run: int = Field(description="How many runs it had.")
    created_at: datetime
    updated_at: datetime
    last_active_at: datetime
    forked_from: UUID | None = Field(description="The session whose conversation it goes on with.")


class SessionPage(BaseModel):
    sessions: list[SessionView] = Field(description="Newest first.")
    next_before: UUID | None = Field(description="Pass as `before` for the next page; null on the last.")


class SessionWorkerView(AnswerView):
    """The session's folder and sandbox on a machine."""

    machine: str | None
    state: WorkerState
    desired_state: WorkerState
    last_active_at: datetime
    stopped_at: datetime | None
    last_sync_at: datetime | None = Field(description="When all it has was stored.")
    last_sync_status: SyncStatus
    last_sync_error: str | None
    lost_at: datetime | None
    alert: str | None = Field(description="Its files could not be stored five times in a row: somebody must look.")


class LandedPath(BaseModel):
    path: str
    status: ChangeStatus | Literal["uncommitted", "discarded"] = Field(
        description="`uncommitted`: it waits in the session's folder."
    )
    review_id: UUID | None = None
    reason: str | None = Field(None, description="Why it was refused or set aside.")


class LandingView(BaseModel):
    """What became of a run's changes."""

    state: LandingState
    seq: int | None = Field(None, description="The snapshot that has them.")
    counts: dict[str, int] = Field({}, description="Changes by their status.")
    paths: list[LandedPath] = Field([], description="The first 200: what needs somebody's eye before the rest.")
    held_back: int = Field(0, description="Files that are not taken: what looks like a credential, odd names.")
    because: str | None = Field(None, description="Why they wait.")


class QueuePlaceView(AnswerView):
    """Where a run stands in the queue."""

    state: QueueState
    ahead: int = Field(description="Runs that are claimed before it, as things stand.")
    parked_reason: str | None
    attempts: int
    last_error: str | None = Field(description="Why the last attempt ended.")


class RunView(AnswerView):
    id: UUID
    session_id: UUID
    number: int = Field(description="In its session, from 1 on.")
    prompt: str
    provider: str
    model: str | None
    profile: str = Field(description="How the agent works: default, plan or ask.")
    options: dict[str, Any] = Field(description="For the agent program, beside the session's.")
    mode: SendMode = Field(description="How the message was sent; `queue`, if it should steer an agent that cannot be.")
    state: RunState
    state_at: datetime
    attempt: int
    machine: str | None = Field(description="That works on it, or did so last.")
    reason: str | None = Field(description="A code: why it ended, or is queued again.")
    message: str | None = Field(description="The same for people.")
    cli_version: str | None = Field(description="Of the agent program.")
    phases: dict[str, int] = Field(description="Milliseconds spent in each state so far.")
    landed: LandingView | None = Field(description="What became of its changes; null: nothing yet.")
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    rewound_at: datetime | None = Field(description="When the conversation went back behind it: it is hidden then.")
    usage: "RunUsageView | None" = Field(None, description="Of a run that is asked for by its id.")
    place: QueuePlaceView | None = Field(
        None, description="In the queue, for a run that is asked for by its id and has not ended."
    )


class RunUsageView(BaseModel):
    """What the run's agent asked of models, as the gateway counted it."""

    requests: int
    input_tokens: int = Field(description="Without those from a cache, and put there.")
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: float


class RunPage(BaseModel):
    runs: list[RunView] = Field(description="Newest first.")
    next_before: int | None = Field(description="Pass as `before` for the next page; null on the last.")


class OpenedSessionView(SessionView):
    worker: SessionWorkerView | None = Field(description="Null: no run has begun yet.")
    open_runs: list[RunView] = Field(description="That have not ended, the oldest first.")
    access: SessionAccessLevel = Field(description="What you may do: everything, drive it, or read.")
    has_terminal: bool = Field(description="Whether you may open a terminal in it while its sandbox runs.")


class AttachmentCreate(BaseModel):
    """A file that comes with a message; the agent finds it in `upload`."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Without folders.", max_length=200, pattern=r"^[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*$")
    media_type: str = Field(
        "application/octet-stream", max_length=200, pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$", examples=["image/png"]
    )
    content: Base64Bytes = Field(description="In base64.")


class RunCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(description="What the agent should do.", min_length=1, max_length=262_144)
    model: str | None = Field(
        None, description="Null: the session's.", min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$"
    )
    profile: ExecutionProfile | None = Field(None, description="Null: the session's.")
    provider: str | None = Field(
        None,
        description="The agent program that answers this message; null: the session's. A new one is "
        "told the conversation.",
        min_length=1,
        max_length=200,
    )
    options: dict[str, Any] = Field(
        {},
        description="For the agent program, beside the session's; `GET /api/v1/agents` lists them.",
        max_length=100,
    )
    mode: SendMode = Field(
        SendMode.QUEUE,
        description="While a run works: `queue` waits for its turn, `steer` goes into the working turn if the agent "
        "can be steered, `interrupt` ends the working run first.",
    )
    attachments: list[AttachmentCreate] | None = Field(
        None,
        description="Files for the agent, 5 MiB in all; images and PDF files are shown to its model.",
        max_length=20,
    )


class SessionRewind(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message_id: str = Field(
        description="The last message of the agent's that stays, or the person's message that is to be said "
        "differently: it goes, too. A run's id stands for its whole answer.",
        min_length=1,
        max_length=300,
    )
    files: bool = Field(
        False, description="Whether the work in the session's folder that is not committed goes back, too."
    )


class RewoundRun(BaseModel):
    id: UUID
    prompt: str
    landed_seq: int | None = Field(
        description="The snapshot that has its changes. They stay in the project; undo the run to take them back."
    )


class SessionRewoundView(BaseModel):
    """Where the conversation stands after it went back."""

    session_id: UUID
    prompt: str | None = Field(description="The person's message that was taken back, to be said differently.")
    memory: Literal["resumed", "rebuilt", "empty"] = Field(
        description="What the agent will know: what it knew then, what is written down of it, or nothing."
    )
    files: bool = Field(description="Whether the uncommitted work went back.")
    runs: list[RewoundRun] = Field(description="That are hidden now, in order.")


class SessionFork(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message_id: str | None = Field(
        None,
        description="As for a rewind: the new session's conversation ends there. Null: with the last run that ended.",
        min_length=1,
        max_length=300,
    )


class MessagePartView(AnswerView):
    kind: MessagePartKind
    part: int
    text: str
    done: bool
    truncated: bool = Field(description="The run's events have more.")


class MessageView(AnswerView):
    run_id: UUID
    attempt: int
    message_id: str
    position: int = Field(description="Its place in the session.")
    role: MessageRole
    state: MessageState
    parts: list[MessagePartView]
    created_at: datetime
    updated_at: datetime


class MessagePage(BaseModel):
    messages: list[MessageView] = Field(description="The newest, in the order they were said.")
    next_before: int | None = Field(description="Pass as `before` for those before them; null: there are none.")


class ToolExecutionView(AnswerView):
    run_id: UUID
    attempt: int
    tool_id: str
    position: int = Field(description="Its place in the session.")
    name: str = Field(description="bash, read, edit, write, search, web, todo, mcp.SERVER.TOOL or other.")
    title: str
    input: Any = Field(description="An object; its beginning as text, if it is large.")
    status: ToolStatus
    output: Any
    truncated: bool = Field(description="The run's events have more.")
    started_at: datetime
    ended_at: datetime | None


class ToolExecutionPage(BaseModel):
    tools: list[ToolExecutionView] = Field(description="In the order they began.")
    next_after: int | None = Field(description="Pass as `after` for the next page; null on the last.")


class RunEndItem(BaseModel):
    """The last item of a run's stream."""

    type: Literal["end"] = "end"
    run: RunView


RunItem = Annotated[EventItem | RunEndItem, Field(discriminator="type")]


class RunEventPage(BaseModel):
    items: list[RunItem] = Field(description="In order. The end of the run, once it is reached, is the last of them.")
    cursor: str = Field(description="Pass as `after` to go on.")
    more: bool = Field(description="Whether there is more already.")
