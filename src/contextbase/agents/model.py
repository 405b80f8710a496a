"""What an agent is asked to do, where, and how that ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from contextbase.agents.kept_programs import ProgramKeeper
from contextbase.agents.mcp_servers import OWN_SERVER, AgentMcpServer

__all__ = [
    "AgentAttachment",
    "AgentPaths",
    "AgentPlace",
    "AgentQuestion",
    "AgentTurn",
    "Capability",
    "SteerMessage",
    "TurnEnd",
    "TurnFailure",
    "TurnOutcome",
]

_REBUILT: Final = "You take part in this conversation. It was written down, because you have no memory of it:"


class Capability(StrEnum):
    STREAM = "stream"
    STOP = "stop"
    RESUME = "resume"
    TODO = "todo"
    HUMAN_LOOP = "human_loop"
    PLAN = "plan"
    MCP = "mcp"
    STEER = "steer"


class TurnOutcome(StrEnum):
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPaths:
    """Of an agent's data, below its folder in .agent_data; patterns as of `Path.glob`."""

    folder: str
    state: tuple[str, ...]  # what a later turn needs, in another sandbox too
    cache: tuple[str, ...] = ()  # made again when it is missing
    secret: tuple[str, ...] = ()  # never leaves the sandbox
    home_link: str | None = None  # the name in HOME that leads there


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentAttachment:
    """A file that came with the message."""

    path: str  # in the workspace
    media_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentTurn:
    """The body of POST /run, checked."""

    run_id: str
    attempt: int
    provider: str
    prompt: str
    model: str
    small_model: str | None = None
    resume: str | None = None  # the agent program's own session id
    system_prompt: str | None = None
    state_version: str | None = None  # of the program that wrote what is resumed
    history: str | None = None  # what was said before, for a program that does not resume it
    notes: str | None = None  # told to the agent before the prompt: what happened since its last turn
    profile: str = "default"
    allowed_tools: tuple[str, ...] = ()  # that a person has allowed for the session
    allowed_once: tuple[str, ...] = ()  # fingerprints of uses that a person has allowed
    options: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[AgentAttachment, ...] = ()
    max_seconds: float | None = None
    max_output: int | None = None  # bytes of all its events
    keep_seconds: float = 0.0  # how long the program may wait for the next turn
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    commands: Mapping[str, str] = field(default_factory=dict)  # texts of slash commands, by name
    mcp_servers: tuple[AgentMcpServer, ...] = ()

    @property
    def servers(self) -> tuple[AgentMcpServer, ...]:
        """With this server's own tools, unless they are not wanted."""
        own = (AgentMcpServer(name=OWN_SERVER, path="/mcp"),) if self.options.get("mcp") else ()
        return (*own, *self.mcp_servers)

    @property
    def key(self) -> str:
        return f"{self.run_id}:{self.attempt}"

    @property
    def message(self) -> str:
        """What the agent is told."""
        parts = [self.prompt]
        if self.attachments:
            listed = (f"- {one.path}" for one in self.attachments)
            parts.append("\n".join(["Files that came with this message:", *listed]))
        if self.notes:
            parts.insert(0, f"<notes>\n{self.notes}\n</notes>")
        if self.history and not self.resume:
            parts.insert(0, f"<conversation>\n{_REBUILT}\n\n{self.history}\n</conversation>")
        return "\n\n".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPlace:
    """Where agents work: folders and loopback addresses inside the sandbox."""

    workspace: Path
    agent_data: Path
    home: Path
    model_url: str
    proxy_url: str
    mcp_url: str
    program_folders: tuple[Path, ...]  # where agent programs are looked for, before PATH
    environment: Mapping[str, str]  # what every program gets
    programs: ProgramKeeper = field(default_factory=ProgramKeeper, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentQuestion:
    question_id: str
    kind: str  # question or permission
    prompt: str
    options: tuple[Mapping[str, str], ...] = ()  # value, label and perhaps description
    multiple: bool = False  # more than one may be chosen
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class SteerMessage:
    """What a person says while the turn works, for this turn."""

    steer_id: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFailure:
    code: str
    message: str
    is_retryable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnEnd:
    outcome: TurnOutcome
    sdk_session_id: str | None = None
    failure: TurnFailure | None = None
