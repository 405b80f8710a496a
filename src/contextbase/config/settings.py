"""All settings, in groups, and under their full names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo

from contextbase.config.groups import (
    AgentSettings,
    AuditSettings,
    ChoreSettings,
    DatabaseSettings,
    LeaseSettings,
    LogSettings,
    MachineSettings,
    ModelSettings,
    ResolverSettings,
    RetentionSettings,
    S3Settings,
    SandboxSettings,
    ServerSettings,
    SettingsGroup,
    StorageSettings,
    WorkspaceSettings,
)
from contextbase.config.login_provider import OidcSettings
from contextbase.data_folder import DEFAULT_DATA

__all__ = ["ENV_PREFIX", "KnownSetting", "Setting", "Settings"]

ENV_PREFIX: Final = "CONTEXTBASE_"

SettingSource = Literal["environment", "file", "default"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownSetting:
    """A setting there is, whatever its value."""

    name: str  # in full, as in the file
    group: str  # "": of no group
    field: str  # its name in the group
    info: FieldInfo

    @property
    def variable(self) -> str:
        return ENV_PREFIX + self.name.upper()

    @property
    def place(self) -> tuple[str, ...]:
        """The way to its value in `Settings`."""
        return (self.group, self.field) if self.group else (self.field,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One row of `contextbase config`."""

    group: str
    name: str
    variable: str
    value: str
    source: SettingSource
    description: str


class Settings(BaseModel):
    """Everything an operator can set. It is made from full names (`sandbox_driver="none"`) and read by group
    (`settings.sandbox.driver`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Path = Field(DEFAULT_DATA, description="Folder for the embedded database, local blobs, keys and logs.")
    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    storage: StorageSettings = StorageSettings()
    s3: S3Settings = S3Settings()
    agents: AgentSettings = AgentSettings()
    audit: AuditSettings = AuditSettings()
    retention: RetentionSettings = RetentionSettings()
    leases: LeaseSettings = LeaseSettings()
    chores: ChoreSettings = ChoreSettings()
    resolver: ResolverSettings = ResolverSettings()
    models: ModelSettings = ModelSettings()
    oidc: OidcSettings = OidcSettings()
    machine: MachineSettings = MachineSettings()
    workspaces: WorkspaceSettings = WorkspaceSettings()
    sandbox: SandboxSettings = SandboxSettings()
    logs: LogSettings = LogSettings()

    if TYPE_CHECKING:  # the full names are not written down for a type checker

        def __init__(self, **values: Any) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _in_groups(cls, values: dict[str, Any]) -> dict[str, Any]:
        known = cls.known()
        grouped: dict[str, Any] = {}
        for name, value in values.items():
            setting = known.get(name)
            if setting is None or not setting.group:  # what is not known is refused under its own name
                grouped[name] = value
            else:
                grouped.setdefault(setting.group, {})[setting.field] = value
        return grouped

    @classmethod
    def known(cls) -> dict[str, KnownSetting]:
        """Every setting, by its full name."""
        return {setting.name: setting for setting in cls._known()}

    @classmethod
    def _known(cls) -> Iterator[KnownSetting]:
        for name, info in cls.model_fields.items():
            group = info.annotation
            if not (isinstance(group, type) and issubclass(group, SettingsGroup)):
                yield KnownSetting(name=name, group="", field=name, info=info)
                continue
            for field, inner in group.model_fields.items():
                yield KnownSetting(name=group.prefix + field, group=name, field=field, info=inner)

    def listing(self, *, environment: Mapping[str, str], file_values: Mapping[str, Any]) -> list[Setting]:
        """Every setting with its value and where that came from; secrets are shown as set or not."""
        rows = []
        for name, setting in self.known().items():
            source: SettingSource = (
                "environment" if environment.get(setting.variable) else "file" if name in file_values else "default"
            )
            value = reduce(getattr, setting.place, self)
            rows.append(
                Setting(
                    group=setting.group,
                    name=name,
                    variable=setting.variable,
                    value="(set, hidden)" if isinstance(value, SecretStr) else _as_typed(value),
                    source=source,
                    description=setting.info.description or "",
                )
            )
        return rows


def _as_typed(value: object) -> str:
    """As a person would write it into the environment."""
    if value is None:
        return ""
    return json.dumps(value, default=str) if isinstance(value, bool | tuple) else str(value)
