"""Bodies of layered agent configuration: one layer's document, what holds in the end, and where each value is from."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, model_validator

from contextbase.agent_vocabulary import ExecutionProfile
from contextbase.vocabulary import Land

__all__ = [
    "AgentBudgets",
    "AgentConfig",
    "AgentConfigHistory",
    "AgentConfigVersion",
    "AgentLimits",
    "AgentTimeouts",
    "ConfigLayer",
    "ConfiguredMcpServer",
    "EffectiveConfigView",
    "SecretReference",
    "WorkspaceKind",
]

_RESERVED: tuple[str, ...] = ("LD_", "CONTEXTBASE_", "ANTHROPIC_", "OPENAI_", "CLAUDE_", "CODEX_", "OPENCODE_")
_OWN_SERVER = "contextbase"
_RESERVED_NAMES = frozenset({"PATH", "HOME", "SHELL", "USER", "IFS", "ENV", "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS"})


class ConfigLayer(StrEnum):
    """The later ones override the earlier ones."""

    APP = "app"
    PROJECT = "project"
    USER = "user"
    RUN = "run"


class WorkspaceKind(StrEnum):
    FOLDER = "folder"  # a folder of the machine in the sandbox
    CONTAINER = "container"  # the writable layer of a container of the session's own


def _check_variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ValueError("is not the name of an environment variable")
    if name.upper() in _RESERVED_NAMES or name.upper().startswith(_RESERVED):
        raise ValueError("is a variable that the sandbox sets itself")
    return name


Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Variable = Annotated[str, AfterValidator(_check_variable)]
Text = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SecretReference(_Part):
    """The name of a secret that is stored sealed; its value is in no configuration and no answer."""

    secret: Name


Value = Text | SecretReference


class ConfiguredMcpServer(_Part):
    type: Literal["http", "stdio"]
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s@]+$")] | None = None
    command: Annotated[list[Text], Field(min_length=1, max_length=100)] | None = None
    headers: dict[Name, Value] = Field({}, max_length=50, description="Of http; they stay on the server.")
    environment: dict[Variable, Value] = Field({}, max_length=100, description="Of stdio.")

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        is_http = self.type == "http"
        if (self.url is not None) != is_http or (self.command is not None) == is_http:
            raise ValueError("a server of type http has a url, and one of type stdio a command")
        if (self.environment and is_http) or (self.headers and not is_http):
            raise ValueError("a server of type http has headers, and one of type stdio an environment")
        return self


def _check_server(name: str) -> str:
    if name == _OWN_SERVER:
        raise ValueError(f"is the name of this server's own tools: {_OWN_SERVER}")
    return name


ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), AfterValidator(_check_server)]


class AgentLimits(_Part):
    seconds: Annotated[StrictInt, Field(ge=1, le=7 * 86400)] | None = Field(None, description="Of one run.")
    output_bytes: Annotated[StrictInt, Field(ge=1024, le=1 << 40)] | None = None


class AgentBudgets(_Part):
    run: Annotated[StrictInt, Field(ge=0, lt=2**40)] | None = Field(None, description="Micro-units a run may cost.")


class AgentTimeouts(_Part):
    question_minutes: Annotated[StrictInt, Field(ge=1, le=7 * 1440)] | None = None
    on_question_timeout: Literal["fail", "default"] | None = None


class AgentConfig(_Part):
    """One layer. What is left out, or null, is as the layer before has it."""

    provider: Name | None = Field(None, description="The agent program, such as claude.")
    model: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[!-~]+$")] | None = None
    profile: ExecutionProfile | None = Field(None, description="How much it does by itself.")
    system_prompt: Annotated[str, Field(max_length=65_536, pattern=r"^[^\x00]*$")] | None = None
    mcp_servers: dict[ServerName, ConfiguredMcpServer | None] | None = Field(
        None, max_length=50, description="By name; null takes a server of an earlier layer away."
    )
    skills: Annotated[list[Name], Field(max_length=200)] | None = Field(
        None, description="Folders below registry/skills in the app's tree, each with a SKILL.md."
    )
    commands: dict[Name, Text | None] | None = Field(None, max_length=200, description="Prompts by name, for /NAME.")
    limits: AgentLimits | None = None
    budgets: AgentBudgets | None = None
    timeouts: AgentTimeouts | None = None
    environment: dict[Variable, Value | None] | None = Field(None, max_length=200)
    landing: Land | None = Field(None, description="What becomes of a run's changes when it succeeds.")
    workspace_kind: WorkspaceKind | None = None


class AgentConfigVersion(BaseModel):
    layer: ConfigLayer
    app_project: str | None = Field(description="Of the app, for the layers project and user.")
    user: str | None
    version: int = Field(description="0: nothing was set yet.")
    config: AgentConfig
    changed_by: str | None
    changed_at: datetime | None


class AgentConfigHistory(BaseModel):
    versions: list[AgentConfigVersion] = Field(description="Newest first.")


class EffectiveConfigView(BaseModel):
    app: str
    app_project: str
    user: str
    config: AgentConfig
    provenance: dict[str, ConfigLayer] = Field(description="Where each value is from, such as limits.seconds: app.")
    versions: dict[ConfigLayer, int] = Field(description="Of the layers that were read.")
    sealed: dict[str, Any] = Field({}, description="Secrets that it names: whether each is stored.")
