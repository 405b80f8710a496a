"""Apps, and what is stored about them, as values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NewType
from uuid import UUID

from contextbase.catalog.app_keys import DEFAULT_PROJECT, check_app_name
from contextbase.errors import InvalidInput
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId, ProjectId, Seq
from contextbase.wire.agent_config import AgentConfig, ConfigLayer
from contextbase.wire.app import VisibilityKind
from contextbase.wire.manifest import RuntimeManifest

__all__ = [
    "App",
    "AppChange",
    "AppId",
    "AppLayer",
    "AppSession",
    "ConfigScope",
    "KnowledgeBase",
    "NewApp",
    "PublishedManifest",
    "SealedSecret",
    "StoreEntry",
    "StoredConfig",
    "VisibilityRule",
    "check_icon",
]

AppId = NewType("AppId", UUID)

_LONGEST_TITLE: Final = 200
_LONGEST_DESCRIPTION: Final = 4096
_LARGEST_ICON: Final = 65_536
_SIGN: Final = 16  # characters of an icon that is no picture
_PICTURE: Final = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, kw_only=True, slots=True)
class VisibilityRule:
    kind: VisibilityKind
    subject: str

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


@dataclass(frozen=True, kw_only=True, slots=True)
class App:
    id: AppId
    name: str
    title: str
    description: str
    icon: str
    enabled: bool
    owner_id: PrincipalId
    owner: str
    project_id: ProjectId  # its own tree
    rules: tuple[VisibilityRule, ...]
    is_member: bool  # whether it was granted to who asks
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class NewApp:
    """An app that somebody registers; checked when it is built."""

    name: str
    title: str
    description: str = ""
    icon: str = ""

    def __post_init__(self) -> None:
        check_app_name(self.name)
        check_words(self.title, self.description)
        check_icon(self.icon)


@dataclass(frozen=True, kw_only=True, slots=True)
class AppChange:
    """What is None stays as it is."""

    title: str | None = None
    description: str | None = None
    icon: str | None = None
    enabled: bool | None = None
    owner: str | None = None

    def __post_init__(self) -> None:
        check_words("x" if self.title is None else self.title, self.description or "")
        check_icon(self.icon or "")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreEntry:
    """What somebody may do with an app, and what decided it. Apps that somebody may not see are never in a store."""

    app: App
    can_use: bool
    why_seen: str
    why_used: str  # why it can, or cannot, be used


@dataclass(frozen=True, slots=True)
class AppLayer:
    """A layer of an app, as people name it."""

    app: str
    kind: ConfigLayer
    project: str | None = None  # of the app; None: the default one


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigScope:
    """Where a layer of configuration, a secret or a knowledge base belongs."""

    layer: ConfigLayer
    project: str = ""
    user: Principal | None = None

    def __post_init__(self) -> None:
        if self.layer is ConfigLayer.RUN:
            raise InvalidInput("What a run overrides is sent with the run, and not stored.")
        if (self.layer is ConfigLayer.APP) != (not self.project):
            raise InvalidInput("The layers project and user, and no other, are of a project of the app.")
        if (self.layer is ConfigLayer.USER) != (self.user is not None):
            raise InvalidInput("The layer user, and no other, is of a user.")

    @classmethod
    def of(cls, layer: ConfigLayer, project: str, user: Principal) -> "ConfigScope":
        """The layer for a user at work in a project."""
        return cls(
            layer=layer,
            project="" if layer is ConfigLayer.APP else project or DEFAULT_PROJECT,
            user=user if layer is ConfigLayer.USER else None,
        )

    @property
    def key(self) -> tuple[str, str, PrincipalId | None]:
        """As rows have it: scope, project, principal."""
        return str(self.layer), self.project, None if self.user is None else self.user.id


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredConfig:
    scope: ConfigScope
    version: int  # 0: nothing was set yet
    config: AgentConfig
    changed_by: str | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedSecret:
    id: UUID  # of the row that it is sealed for
    layer: ConfigLayer
    sealed: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedManifest:
    manifest: RuntimeManifest
    number: int
    tree_seq: Seq
    created_by: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class KnowledgeBase:
    layer: ConfigLayer
    project: str
    name: str
    description: str
    tags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AppSession:
    session_id: UUID
    app_id: AppId
    app: str
    tree: ProjectId
    project: str
    login: str
    pinned_version: str | None  # None: it follows the latest
    overrides: Mapping[str, Any]
    runtime_version: str | None  # of which it was last composed


def check_words(title: str, description: str) -> None:
    if not title.strip() or len(title.encode()) > _LONGEST_TITLE or not title.isprintable():
        raise InvalidInput(f"An app's title has 1 to {_LONGEST_TITLE} printable bytes.")
    if len(description.encode()) > _LONGEST_DESCRIPTION or "\x00" in description:
        raise InvalidInput(f"A description has at most {_LONGEST_DESCRIPTION} bytes and no NUL.")


def check_icon(icon: str) -> None:
    """A sign or two, or a small picture; never something that a browser runs."""
    if icon and not _PICTURE.fullmatch(icon) and not (len(icon) <= _SIGN and icon.isprintable() and "<" not in icon):
        raise InvalidInput("An icon is a sign such as an emoji, or data:image/png;base64,… (also jpeg, gif, webp).")
    if len(icon.encode()) > _LARGEST_ICON:
        raise InvalidInput(f"An icon has at most {_LARGEST_ICON} bytes.")
