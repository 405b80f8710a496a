"""The groups of settings. Each field's description is its documentation (`contextbase config`)."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator

__all__ = [
    "AgentSettings",
    "AuditSettings",
    "BlobLocation",
    "ChoreSettings",
    "DatabaseSettings",
    "HttpUrl",
    "LeaseSettings",
    "LogSettings",
    "MachineSettings",
    "ModelSettings",
    "ResolverSettings",
    "RetentionSettings",
    "S3Settings",
    "SandboxSettings",
    "ServerSettings",
    "SettingsGroup",
    "StorageSettings",
    "WorkspaceSettings",
]


def _is_http_url(value: str | None) -> str | None:
    if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname):
        raise ValueError("must be an http:// or https:// URL")
    return value.rstrip("/") if value else None


HttpUrl = Annotated[str | None, AfterValidator(_is_http_url)]


class SettingsGroup(BaseModel):
    """A setting's full name, in the environment and in the file, is the group's prefix and the field's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefix: ClassVar[str] = ""


class ServerSettings(SettingsGroup):
    host: str = Field(default="127.0.0.1", description="Address the server listens on.", min_length=1, max_length=253)
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=8787, description="Port the server listens on; 0 takes a free one."
    )
    public_url: HttpUrl = Field(
        default=None,
        description="Base URL users reach the server by, when it is not http://HOST:PORT (behind a proxy).",
    )
    max_request_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = Field(
        default=8_388_608, description="Largest request body that is not a streamed upload."
    )
    max_upload_bytes: Annotated[int, Field(ge=1024, le=5_497_558_138_880)] = Field(
        default=5_368_709_120, description="Largest streamed upload."
    )
    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Most connections of clients at once; unset: half of the files the process may open."
    )
    client_timeout_seconds: Annotated[float, Field(ge=0.1, le=3600)] = Field(
        default=30.0,
        description="Longest a client may take to send a request's headers; also the time over which "
        "client_min_bytes_per_second is measured.",
    )
    client_min_bytes_per_second: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        default=100.0,
        description="A client that sends a body, or reads an answer, more slowly than this is disconnected.",
    )
    shutdown_grace_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        default=10.0, description="How long running requests may finish after a stop signal."
    )


class DatabaseSettings(SettingsGroup):
    prefix: ClassVar[str] = "database_"

    url: SecretStr | None = Field(
        default=None,
        description="postgresql:// URL of a PostgreSQL 15+; unset: an embedded PostgreSQL in the data folder.",
    )
    pool_size: Annotated[int, Field(ge=2, le=500)] = Field(
        default=20, description="Most connections one server process opens to the database."
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=60.0, description="Longest a single database statement may take."
    )

    @field_validator("url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        try:
            if value is None or urlsplit(value.get_secret_value()).scheme in ("postgresql", "postgres"):
                return value
        except ValueError:  # says what is wrong by quoting it, password and all
            pass
        raise ValueError("must be a postgresql:// URL, with special characters in it as %40 and the like")


@dataclass(frozen=True, kw_only=True, slots=True)
class BlobLocation:
    """Where large blobs go: a bucket and prefix, or (both None) the local data folder."""

    bucket: str | None = None
    prefix: str = ""


class StorageSettings(SettingsGroup):
    blobs: str = Field(
        default="local", description="Where blobs of inline_limit_bytes and more go: 'local' or s3://bucket/prefix."
    )
    inline_limit_bytes: Annotated[int, Field(ge=0, le=1_048_576)] = Field(
        default=262_144, description="Blobs smaller than this are stored in PostgreSQL itself."
    )

    @field_validator("blobs")
    @classmethod
    def _is_a_location(cls, value: str) -> str:
        _blob_location(value)
        return value

    @property
    def blob_location(self) -> BlobLocation:
        return _blob_location(self.blobs)


class S3Settings(SettingsGroup):
    prefix: ClassVar[str] = "s3_"

    endpoint: HttpUrl = Field(default=None, description="URL of an S3-compatible service; unset: Amazon S3.")
    region: str = Field(default="us-east-1", description="Region of the bucket.")
    access_key_id: str | None = Field(default=None, description="Access key id for the bucket.")
    secret_access_key: SecretStr | None = Field(default=None, description="Secret access key for the bucket.")
    link_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=0,
        description="How long a link to download a file from the bucket itself works; 0: there are no links.",
    )


class AgentSettings(SettingsGroup):
    prefix: ClassVar[str] = "agent_"

    folders: tuple[Path, ...] = Field(
        default=(),
        description="Folders of this machine with agent programs (in each, one folder per program: claude, codex, "
        "opencode), which sessions see read-only. Programs that Python packages bring are found without it.",
    )
    model: str = Field(default="claude-sonnet-4-5", min_length=1, description="The model of sessions that name none.")
    small_model: str = Field(
        default="claude-haiku-4-5", min_length=1, description="The model that agent programs use for small tasks."
    )
    run_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        default=21_600.0, description="Longest that one run of an agent may take."
    )
    output_bytes: Annotated[int, Field(ge=65_536, le=10_737_418_240)] = Field(
        default=268_435_456, description="Most that one run of an agent may tell: text, tool output and the like."
    )
    question_wait_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        default=600.0,
        description="How long an agent's program waits for a person's answer. Then its turn ends, and the answer "
        "begins the next one.",
    )
    question_minutes: Annotated[float, Field(gt=0, le=525_600)] = Field(
        default=60.0,
        description="A question that nobody answered for as long has expired, and its run has failed. A later answer "
        "starts a new run.",
    )
    most_runs: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=100, description="Most runs of agents at work at a time on one machine; others wait in the queue."
    )
    idle_minutes: Annotated[float, Field(gt=0, le=525_600)] = Field(
        default=20.0,
        description="A session's sandbox that nobody used for as long is stopped, once its files are stored.",
    )
    program_idle_minutes: Annotated[float, Field(ge=0, le=1_440)] = Field(
        default=5.0,
        description="A session's agent program waits this long for the next message, which then need not start it; it "
        "takes memory meanwhile. 0: it ends with each run.",
    )
    snapshot_minutes: Annotated[float, Field(gt=0, le=1_440)] = Field(
        default=5,
        description="While a run works, what its session has beside the project's files is stored this often, as well "
        "as work that is not committed. When its machine is lost, another one goes on from there.",
    )
    remove_hours: Annotated[float, Field(gt=0, le=87_600)] = Field(
        default=24.0,
        description="A session's folder on a machine is removed this long after its sandbox was stopped; the next "
        "message brings it back from its snapshot.",
    )


class AuditSettings(SettingsGroup):
    prefix: ClassVar[str] = "audit_"

    key: SecretStr | None = Field(
        default=None,
        description="Secret of the audit chain, 32 characters or more, for several servers on one database; "
        "unset: one is made in the data folder.",
    )

    @field_validator("key")
    @classmethod
    def _is_long(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < 32:
            raise ValueError("must have 32 characters or more")
        return value


class RetentionSettings(SettingsGroup):
    gc_grace_hours: Annotated[float, Field(ge=0, le=87_600)] = Field(
        default=24.0, description="How long an unreferenced blob is kept before `contextbase gc` may remove it."
    )
    event_retention_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        default=7.0, description="How long a project's events that are not commits are kept; commits stay for good."
    )
    user_event_retention_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        default=30.0, description="How long notices to a user, agent or adapter are kept."
    )
    system_event_retention_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        default=30.0, description="How long events of the system are kept."
    )


class LeaseSettings(SettingsGroup):
    prefix: ClassVar[str] = "lease_"

    ttl_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=300.0, description="How long a lease lasts without a heartbeat of its holder."
    )


class ChoreSettings(SettingsGroup):
    prefix: ClassVar[str] = "leader_"

    lease_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=15.0,
        description="How long after its last sign of life the server that does the shared chores is given up.",
    )


class ResolverSettings(SettingsGroup):
    prefix: ClassVar[str] = "resolver_"

    url: HttpUrl = Field(
        default=None,
        description="Base URL of an OpenAI-compatible service (/v1/chat/completions) that suggests how to resolve "
        "conflicts; what is contested is sent there. Unset: none is asked.",
    )
    model: str = Field(default="", description="The model the resolver is asked for.", max_length=200)
    api_key: SecretStr | None = Field(default=None, description="Key for the resolver.")
    apply: bool = Field(
        default=False,
        description="Commit what the resolver suggests, where the policy asks for no person; else only show it.",
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = Field(
        default=60.0, description="Longest the resolver may take for one answer."
    )


class ModelSettings(SettingsGroup):
    prefix: ClassVar[str] = "model_"

    anthropic_key: SecretStr | None = Field(
        default=None,
        description="Key of Anthropic's API, for agents' models; agents never see it. Unset, and no other added: the "
        "built-in demonstration model answers.",
    )
    anthropic_url: HttpUrl = Field(
        default="https://api.anthropic.com", description="Base URL of Anthropic's API, or of one that speaks it."
    )
    openai_key: SecretStr | None = Field(
        default=None, description="Key of OpenAI's API, for agents' models; as model_anthropic_key."
    )
    openai_url: HttpUrl = Field(
        default="https://api.openai.com", description="Base URL of OpenAI's API, or of one that speaks it."
    )
    run_budget: Annotated[float, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="Most that one run's model requests may cost, in units of the prices (dollars); unset: no limit.",
    )
    idle_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=600.0, description="How long a model service may be silent in the middle of an answer."
    )


class MachineSettings(SettingsGroup):
    node_name: str | None = Field(
        default=None,
        description="What this server calls itself where workspaces are listed; unset: a name is made in the data "
        "folder.",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
    )
    agent_uid: Annotated[int, Field(ge=1, lt=2**32 - 1)] | None = Field(
        default=None,
        description="Number of the account (user and group) that agents' folders belong to and their commands run as; "
        "unset: 61184 for a server that runs as root, else the server's own.",
    )
    machine_host: str = Field(
        default="127.0.0.1",
        description="Address this machine listens on for requests that other servers of its database send on.",
        min_length=1,
        max_length=253,
    )
    machine_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=0, description="Port for those requests; 0 takes a free one."
    )
    machine_address: HttpUrl = Field(
        default=None,
        description="URL by which the other servers reach this machine; unset: http://MACHINE_HOST:PORT.",
    )
    machine_lost_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=20.0, description="How long after its last sign of life a machine counts as lost."
    )
    mirror_max_bytes: Annotated[int, Field(ge=0)] = Field(
        default=21_474_836_480, description="Room for this machine's copies of snapshots; what is in use may take more."
    )


class WorkspaceSettings(SettingsGroup):
    prefix: ClassVar[str] = "workspace_"

    provider: Literal["auto", "overlay", "copy"] = Field(
        default="auto", description="How agents' folders are made; auto: overlay mounts where they work, else copies."
    )
    max_bytes: Annotated[int, Field(ge=1024)] = Field(
        default=10_737_418_240, description="Most bytes of changes one commit of a workspace may bring."
    )
    max_files: Annotated[int, Field(ge=1)] = Field(
        default=200_000, description="Most changes one commit of a workspace may bring."
    )


class SandboxSettings(SettingsGroup):
    prefix: ClassVar[str] = "sandbox_"

    driver: Literal["auto", "bubblewrap", "docker", "none"] = Field(
        default="auto", description="What agents' commands run in; auto: bubblewrap where it works, else docker."
    )
    without_isolation: bool = Field(
        default=False,
        description="Allow sandbox_driver 'none': commands can then do all that their account can, anywhere.",
    )
    image: str = Field(
        default="contextbase-agent:latest",
        description="Image of Docker sandboxes; images/ says how to build it.",
        min_length=1,
    )
    docker_address: str = Field(
        default="unix:///var/run/docker.sock", description="Where the Docker Engine listens.", min_length=1
    )
    extra_folders: tuple[Path, ...] = Field(
        default=(), description="Folders of this machine that bubblewrap sandboxes see, beside /usr, and cannot change."
    )
    memory_bytes: Annotated[int, Field(ge=16_777_216)] = Field(
        default=2_147_483_648, description="Most memory of one sandbox."
    )
    cpu_percent: Annotated[float, Field(gt=0)] = Field(
        default=100.0, description="Most processor time of one sandbox, in percent of one processor."
    )
    processes: Annotated[int, Field(ge=2)] = Field(default=512, description="Most processes of one sandbox.")
    seconds: Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        default=3600.0, description="Longest a command in a sandbox may run."
    )
    output_bytes: Annotated[int, Field(ge=1024)] = Field(
        default=67_108_864, description="Most output of one command in a sandbox."
    )
    most_running: Annotated[int, Field(ge=1)] = Field(
        default=100, description="Most commands of `contextbase run` at the same time."
    )
    idle_minutes: Annotated[float, Field(gt=0, le=525_600)] = Field(
        default=30.0, description="How long a sandbox is kept running after its last command."
    )


class LogSettings(SettingsGroup):
    prefix: ClassVar[str] = "log_"

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log line kept."
    )
    format: Literal["auto", "text", "json"] = Field(
        default="auto", description="Log lines as text or JSON; auto: text on a terminal, JSON otherwise."
    )


def _blob_location(value: str) -> BlobLocation:
    if value == "local":
        return BlobLocation()
    match = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", value)
    if not match:
        raise ValueError("must be 'local' or s3://bucket/prefix")
    return BlobLocation(bucket=match[1], prefix=(match[2] or "").strip("/"))
