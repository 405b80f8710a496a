"""Runtime manifests and restore plans: how the sessions of an app get their files.

Both spellings are read, `runtime_version` and `runtimeVersion`. Written is the second, or the first if asked for.
"""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel

__all__ = [
    "CleanupAction",
    "CleanupRule",
    "ConflictPolicy",
    "ManifestSpelling",
    "MountName",
    "MountPoint",
    "RestoreLayer",
    "RestorePlan",
    "RestorePlanEntry",
    "RuntimeManifest",
    "SeedFile",
]

RUNTIME_VERSION = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class ManifestSpelling(StrEnum):
    CAMEL = "camel"
    SNAKE = "snake"


class ConflictPolicy(StrEnum):
    """What holds where a session and the app's template differ, and both were changed."""

    KEEP_SESSION = "keep_session"
    PREFER_REGISTRY = "prefer_registry"
    MERGE = "merge"


class RestoreLayer(StrEnum):
    REGISTRY_BASE = "registry_base"
    SESSION_OVERLAY = "session_overlay"
    KNOWLEDGE_OVERLAY = "knowledge_overlay"
    USER_OVERLAY = "user_overlay"


class CleanupAction(StrEnum):
    REMOVE_IF_EXISTS = "remove_if_exists"
    TRUNCATE_IF_EXISTS = "truncate_if_exists"


class MountName(StrEnum):
    APP_KB = "app_kb"
    PROJECT_KB = "project_kb"
    USER_FILES = "user_files"
    AGENT_DATA = "agent_data"


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    def to_json(self, spelling: ManifestSpelling = ManifestSpelling.CAMEL) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=spelling is ManifestSpelling.CAMEL)


class SeedFile(_Document):
    source: str = Field(alias="from", max_length=1024, description="A key of the app.")
    to: str = Field(max_length=1024, description="Where it goes, such as /workspace/README.md.")
    if_missing_only: bool = True

    @model_serializer(mode="wrap")
    def _from_in_both_spellings(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The one field whose name is a word of Python."""
        written: dict[str, Any] = write(self)
        return {"from": self.source} | {name: value for name, value in written.items() if name != "source"}


class MountPoint(_Document):
    name: MountName
    target_path: str = Field(max_length=1024, description="Such as /workspace/.kb/app.")
    read_only: bool


class CleanupRule(_Document):
    action: CleanupAction
    path: str = Field(max_length=1024, description="Such as /workspace/.tmp.")


class RuntimeManifest(_Document):
    """One version of how an app's sessions are composed. `catalog.manifest.check_manifest` checks what types cannot."""

    app_id: str = Field(max_length=100)
    runtime_version: str = Field(pattern=RUNTIME_VERSION)
    workspace_template_prefix: str = Field(max_length=1024, description="Of the files a session begins with.")
    required_paths: tuple[str, ...] = Field((), max_length=1000)
    seed_files: tuple[SeedFile, ...] = Field((), max_length=1000)
    mount_points: tuple[MountPoint, ...] = Field((), max_length=4)
    conflict_policy: ConflictPolicy = ConflictPolicy.KEEP_SESSION
    protected_paths: tuple[str, ...] = Field((), max_length=1000)
    cleanup_rules: tuple[CleanupRule, ...] = Field((), max_length=1000)

    def mount(self, name: MountName) -> MountPoint | None:
        return next((point for point in self.mount_points if point.name is name), None)


class RestorePlanEntry(_Document):
    layer: RestoreLayer
    from_prefix: str
    to_path: str
    optional: bool = Field(description="Whether there may be nothing there.")


class RestorePlan(_Document):
    """What is put into a session's folder, in this order."""

    app_id: str
    runtime_version: str
    workspace_s3_prefix: str
    conflict_policy: ConflictPolicy
    protected_paths: tuple[str, ...]
    entries: tuple[RestorePlanEntry, ...]
