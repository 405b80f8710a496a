"""Projects, versions and commits as stored."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from contextbase.audit.model import WayIn
from contextbase.errors import InvalidInput
from contextbase.ids import ContentHash, NodeId, PrincipalId, ProjectId, Seq, TreePath
from contextbase.vocabulary import Kind

__all__ = [
    "Child",
    "Commit",
    "Kind",
    "NewCommit",
    "NewVersion",
    "NodeChange",
    "NodeState",
    "Project",
    "StoredSizes",
    "Version",
    "as_project_id",
    "check_project_name",
]

_PROJECT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    id: ProjectId
    name: str
    description: str
    head: Seq
    epoch: UUID  # renewed by a restore; every cursor is (epoch, seq)
    policy_version: int
    created_at: datetime
    sharing: "Sharing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharing:
    """Which new files the workspaces of a project commit."""

    reads_gitignore: bool
    allowed_secrets: tuple[str, ...]  # patterns of paths that are shared though they look like credentials


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeState:
    """What a node is from one of its versions on."""

    node_id: NodeId
    number: int
    seq: Seq
    path: TreePath
    kind: Kind
    content_hash: ContentHash | None
    size: int
    executable: bool
    mime: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Version(NodeState):
    """A node's n-th state."""

    base_number: int | None = None  # what it was made from
    merged_number: int | None = None  # the head it was merged with
    sent_hash: ContentHash | None = None  # what the writer sent, when the result differs


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    seq: Seq
    id: UUID
    principal_id: PrincipalId
    way_in: WayIn
    message: str
    committed_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class NewVersion:
    """A version to append: number 1 makes the node, higher ones replace the number before."""

    node_id: NodeId
    number: int
    path: TreePath
    kind: Kind
    content_hash: ContentHash | None = None
    size: int = 0
    executable: bool = False
    mime: str = ""
    base_number: int | None = None
    merged_number: int | None = None
    sent_hash: ContentHash | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewCommit:
    id: UUID  # chosen by the writer, so that it can ask whether the commit happened
    principal_id: PrincipalId
    way_in: WayIn
    message: str
    run: str | None = None
    versions: tuple[NewVersion, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeChange:
    """How one node differs between two snapshots; None where it does not exist."""

    before: Version | None
    after: Version | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """One entry of a folder. A folder that only its files imply has no version."""

    name: str
    kind: Kind
    version: Version | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredSizes:
    files: int  # at the head
    bytes: int  # at the head
    versions: int
    stored_bytes: int  # of all versions, equal contents counted once


def check_project_name(name: str) -> str:
    if not _PROJECT_NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:120]!r} is not a project name: 1 to 100 of a-z, 0-9 and ._- , starting with a letter or digit."
        )
    if as_project_id(name) is not None:
        raise InvalidInput(f"{name!r} is not a project name: it could be the id of another project.")
    return name


def as_project_id(text: str) -> ProjectId | None:
    try:
        return ProjectId(UUID(text))
    except ValueError:
        return None
