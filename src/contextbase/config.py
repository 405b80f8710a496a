"""Settings: read once, at the edge. Environment (`CONTEXTBASE_*`) beats the TOML file, which beats the defaults."""

import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from contextbase.data_folder import DEFAULT_DATA
from contextbase.errors import InvalidSettings

__all__ = ["ENV_PREFIX", "BlobLocation", "Setting", "Settings", "load_settings"]

ENV_PREFIX: Final = "CONTEXTBASE_"
SETTINGS_FILE: Final = "contextbase.toml"

SettingSource = Literal["environment", "file", "default"]

# Variables with our prefix that are not settings of the server.
_OTHER_VARIABLES: Final = frozenset(
    {
        "CONTEXTBASE_CONFIG",
        "CONTEXTBASE_PROJECT",
        "CONTEXTBASE_SERVER",
        "CONTEXTBASE_TEST_REQUIRE",
        "CONTEXTBASE_TOKEN",
        "CONTEXTBASE_URL",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BlobLocation:
    """Where large blobs go: a bucket and prefix, or (both None) the local data folder."""

    bucket: str | None = None
    prefix: str = ""


class Settings(BaseSettings):
    """Everything an operator can set. Each field's description is its documentation (`contextbase config`)."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    data: Path = Field(DEFAULT_DATA, description="Folder for the embedded database, local blobs, keys and logs.")
    host: str = Field("127.0.0.1", description="Address the server listens on.", min_length=1, max_length=253)
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8787, description="Port the server listens on; 0 takes a free one."
    )
    public_url: str | None = Field(
        None, description="Base URL users reach the server by, when it is not http://HOST:PORT (behind a proxy)."
    )
    database_url: SecretStr | None = Field(
        None, description="postgresql:// URL of a PostgreSQL 15+; unset: an embedded PostgreSQL in the data folder."
    )
    database_pool_size: Annotated[int, Field(ge=2, le=500)] = Field(
        20, description="Most connections one server process opens to the database."
    )
    database_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        60.0, description="Longest a single database statement may take."
    )
    blobs: str = Field(
        "local", description="Where blobs of inline_limit_bytes and more go: 'local' or s3://bucket/prefix."
    )
    s3_endpoint: str | None = Field(None, description="URL of an S3-compatible service; unset: Amazon S3.")
    s3_region: str = Field("us-east-1", description="Region of the bucket.")
    s3_access_key_id: str | None = Field(None, description="Access key id for the bucket.")
    s3_secret_access_key: SecretStr | None = Field(None, description="Secret access key for the bucket.")
    inline_limit_bytes: Annotated[int, Field(ge=0, le=1_048_576)] = Field(
        262_144, description="Blobs smaller than this are stored in PostgreSQL itself."
    )
    audit_key: SecretStr | None = Field(
        None,
        description="Secret of the audit chain, 32 characters or more, for several servers on one database; "
        "unset: one is made in the data folder.",
    )
    gc_grace_hours: Annotated[float, Field(ge=0, le=87_600)] = Field(
        24.0, description="How long an unreferenced blob is kept before `contextbase gc` may remove it."
    )
    event_retention_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        7.0, description="How long a project's events that are not commits are kept; commits stay for good."
    )
    user_event_retention_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        30.0, description="How long notices to a user, agent or adapter are kept."
    )
    system_event_retention_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        30.0, description="How long events of the system are kept."
    )
    resolver_url: str | None = Field(
        None,
        description="Base URL of an OpenAI-compatible service (/v1/chat/completions) that suggests how to resolve "
        "conflicts; what is contested is sent there. Unset: none is asked.",
    )
    resolver_model: str = Field("", description="The model the resolver is asked for.", max_length=200)
    resolver_api_key: SecretStr | None = Field(None, description="Key for the resolver.")
    resolver_apply: bool = Field(
        False, description="Commit what the resolver suggests, where the policy asks for no person; else only show it."
    )
    resolver_timeout_seconds: Annotated[float, Field(gt=0, le=600)] = Field(
        60.0, description="Longest the resolver may take for one answer."
    )
    node_name: str | None = Field(
        None,
        description="What this server calls itself where workspaces are listed; unset: a name is made in the data "
        "folder.",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
    )
    agent_uid: Annotated[int, Field(ge=1, lt=2**32 - 1)] | None = Field(
        None,
        description="Number of the account (user and group) that agents' folders belong to and their commands run as; "
        "unset: 61184 for a server that runs as root, else the server's own.",
    )
    workspace_provider: Literal["auto", "overlay", "copy"] = Field(
        "auto", description="How agents' folders are made; auto: overlay mounts where they work, else copies."
    )
    workspace_max_bytes: Annotated[int, Field(ge=1024)] = Field(
        10_737_418_240, description="Most bytes of changes one commit of a workspace may bring."
    )
    workspace_max_files: Annotated[int, Field(ge=1)] = Field(
        200_000, description="Most changes one commit of a workspace may bring."
    )
    sandbox_driver: Literal["auto", "bubblewrap", "docker", "none"] = Field(
        "auto", description="What agents' commands run in; auto: bubblewrap where it works, else docker."
    )
    sandbox_without_isolation: bool = Field(
        False,
        description="Allow sandbox_driver 'none': commands can then do all that their account can, anywhere.",
    )
    sandbox_image: str = Field(
        "contextbase-agent:latest", description="Image of Docker sandboxes; images/ says how to build it.", min_length=1
    )
    sandbox_docker_address: str = Field(
        "unix:///var/run/docker.sock", description="Where the Docker Engine listens.", min_length=1
    )
    sandbox_extra_folders: tuple[Path, ...] = Field(
        (), description="Folders of this machine that bubblewrap sandboxes see, beside /usr, and cannot change."
    )
    sandbox_memory_bytes: Annotated[int, Field(ge=16_777_216)] = Field(
        2_147_483_648, description="Most memory of one sandbox."
    )
    sandbox_cpu_percent: Annotated[float, Field(gt=0)] = Field(
        100.0, description="Most processor time of one sandbox, in percent of one processor."
    )
    sandbox_processes: Annotated[int, Field(ge=2)] = Field(512, description="Most processes of one sandbox.")
    sandbox_seconds: Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        3600.0, description="Longest a command in a sandbox may run."
    )
    sandbox_output_bytes: Annotated[int, Field(ge=1024)] = Field(
        67_108_864, description="Most output of one command in a sandbox."
    )
    sandbox_most_running: Annotated[int, Field(ge=1)] = Field(
        100, description="Most commands of `contextbase run` at the same time."
    )
    sandbox_idle_minutes: Annotated[float, Field(gt=0, le=525_600)] = Field(
        30.0, description="How long a sandbox is kept running after its last command."
    )
    mirror_max_bytes: Annotated[int, Field(ge=0)] = Field(
        21_474_836_480, description="Room for this machine's copies of snapshots; what is in use may take more."
    )
    lease_ttl_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        300.0, description="How long a lease lasts without a heartbeat of its holder."
    )
    max_request_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = Field(
        8_388_608, description="Largest request body that is not a streamed upload."
    )
    max_upload_bytes: Annotated[int, Field(ge=1024, le=5_497_558_138_880)] = Field(
        5_368_709_120, description="Largest streamed upload."
    )
    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Most connections of clients at once; unset: half of the files the process may open."
    )
    client_timeout_seconds: Annotated[float, Field(ge=0.1, le=3600)] = Field(
        30.0,
        description="Longest a client may take to send a request's headers; also the time over which "
        "client_min_bytes_per_second is measured.",
    )
    client_min_bytes_per_second: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        100.0, description="A client that sends a body, or reads an answer, more slowly than this is disconnected."
    )
    shutdown_grace_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        10.0, description="How long running requests may finish after a stop signal."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe log line kept.")
    log_format: Literal["auto", "text", "json"] = Field(
        "auto", description="Log lines as text or JSON; auto: text on a terminal, JSON otherwise."
    )

    @field_validator("blobs")
    @classmethod
    def _blobs_is_a_place(cls, value: str) -> str:
        _blob_location(value)
        return value

    @field_validator("database_url")
    @classmethod
    def _database_is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        try:
            if value is None or urlsplit(value.get_secret_value()).scheme in ("postgresql", "postgres"):
                return value
        except ValueError:  # says what is wrong by quoting it, password and all
            pass
        raise ValueError("must be a postgresql:// URL, with special characters in it as %40 and the like")

    @field_validator("audit_key")
    @classmethod
    def _audit_key_is_long(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < 32:
            raise ValueError("must have 32 characters or more")
        return value

    @field_validator("public_url", "s3_endpoint", "resolver_url")
    @classmethod
    def _is_http_url(cls, value: str | None) -> str | None:
        if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname):
            raise ValueError("must be an http:// or https:// URL")
        return value.rstrip("/") if value else None

    @property
    def blob_location(self) -> BlobLocation:
        return _blob_location(self.blobs)

    def listing(self, *, environment: dict[str, str], file_values: dict[str, Any]) -> list["Setting"]:
        """Every setting with its value and where that came from; secrets are shown as set or not."""
        rows = []
        for name, field in type(self).model_fields.items():
            variable = ENV_PREFIX + name.upper()
            source: SettingSource = (
                "environment" if environment.get(variable) else "file" if name in file_values else "default"
            )
            value = getattr(self, name)
            shown = "(set, hidden)" if isinstance(value, SecretStr) else _as_typed(value)
            rows.append(
                Setting(name=name, variable=variable, value=shown, source=source, description=field.description or "")
            )
        return rows


def _as_typed(value: object) -> str:
    """As a person would write it into the environment."""
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, bool | tuple) else str(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One row of `contextbase config`."""

    name: str
    variable: str
    value: str
    source: SettingSource
    description: str


def load_settings(**overrides: Any) -> Settings:
    """Read the settings file and the environment; `overrides` (command-line options that were given) beat both."""
    file_values = read_settings_file(overrides.get("data"))
    in_environment = {name.upper() for name, value in os.environ.items() if value}
    from_file = {name: value for name, value in file_values.items() if ENV_PREFIX + name.upper() not in in_environment}
    try:
        return Settings(**from_file | overrides)  # what is passed here beats the environment
    except ValidationError as error:
        raise InvalidSettings(_first_problem(error)) from None


def read_settings_file(data: Path | None = None) -> dict[str, Any]:
    """The values of `$CONTEXTBASE_CONFIG`, or of contextbase.toml in the data folder when there is one."""
    named = os.environ.get("CONTEXTBASE_CONFIG")
    path = Path(named) if named else (data or Path(os.environ.get("CONTEXTBASE_DATA") or DEFAULT_DATA)) / SETTINGS_FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise InvalidSettings(f"The settings file {path} (from CONTEXTBASE_CONFIG) does not exist.") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(f"The settings file {path} cannot be read: {error}") from None


def unknown_variables(environment: dict[str, str]) -> list[str]:
    """Variables that look like ours but name no setting: most likely misspelt."""
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields} | _OTHER_VARIABLES
    return sorted(name for name in environment if name.startswith(ENV_PREFIX) and name not in known)


def _blob_location(value: str) -> BlobLocation:
    if value == "local":
        return BlobLocation()
    match = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", value)
    if not match:
        raise ValueError("must be 'local' or s3://bucket/prefix")
    return BlobLocation(bucket=match[1], prefix=(match[2] or "").strip("/"))


def _first_problem(error: ValidationError) -> str:
    # Only location and reason: the input itself may be a secret.
    problem = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"The setting '{name}' does not exist; `contextbase config` lists those that do."
    reason = problem["msg"].removeprefix("Value error, ")
    return f"The setting '{name}' ({ENV_PREFIX}{name.upper()}) is wrong: {reason}."
