"""Scopes, and the events of a scope's stream as they are written and read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self
from uuid import UUID

from contextbase.errors import InvalidInput
from contextbase.identity.model import PrincipalKind
from contextbase.ids import ContentHash, PrincipalId, ProjectId, TreePath
from contextbase.vocabulary import ScopeKind

__all__ = [
    "START",
    "SYSTEM",
    "EventAuthor",
    "EventBody",
    "NewEvent",
    "Position",
    "Scope",
    "ScopeKind",
    "StreamEvent",
    "StreamHead",
    "StreamPage",
]

START: Final = "start"
"""What readers give as a cursor to begin with the first event."""

_NOTHING_YET: Final = UUID(int=0)
_POSITION: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Whose events a stream has."""

    kind: ScopeKind
    id: UUID  # the project, session, principal or workspace; all zeros: the system

    @classmethod
    def project(cls, project_id: ProjectId) -> Self:
        return cls(kind=ScopeKind.PROJECT, id=project_id)

    @classmethod
    def session(cls, session_id: UUID) -> Self:
        return cls(kind=ScopeKind.SESSION, id=session_id)

    @classmethod
    def user(cls, principal_id: PrincipalId) -> Self:
        return cls(kind=ScopeKind.USER, id=principal_id)

    @classmethod
    def workspace(cls, workspace_id: UUID) -> Self:
        return cls(kind=ScopeKind.WORKSPACE, id=workspace_id)

    @classmethod
    def parse(cls, text: str) -> Self:
        """`kind:id`, or `system`; raises `InvalidInput` for anything else."""
        kind, _, name = text.partition(":")
        try:
            if text == ScopeKind.SYSTEM:
                return cls(kind=ScopeKind.SYSTEM, id=SYSTEM.id)
            if ScopeKind(kind) is not ScopeKind.SYSTEM:
                return cls(kind=ScopeKind(kind), id=UUID(name))
        except ValueError:
            pass
        raise InvalidInput(
            f"{text[:120]!r} is not a scope; write project:ID, session:ID, user:ID, workspace:ID or system."
        )

    def __str__(self) -> str:
        return str(self.kind) if self.kind is ScopeKind.SYSTEM else f"{self.kind}:{self.id}"


SYSTEM: Final = Scope(kind=ScopeKind.SYSTEM, id=UUID(int=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class EventAuthor:
    id: PrincipalId
    kind: PrincipalKind
    name: str

    @property
    def principal(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBody:
    """The blob with an event's whole payload, as JSON."""

    hash: ContentHash
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    kind: str
    principal_id: PrincipalId | None = None
    path: TreePath | None = None
    payload: Mapping[str, object]
    body: EventBody | None = None  # set by `EventBodies`: the payload is then a preview of it


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)  # one object for all who read it
class StreamEvent:
    number: int
    kind: str
    author: EventAuthor | None
    path: TreePath | None  # of a project's event: who may see the path may see the event; None: everyone
    payload: Mapping[str, object]
    body: EventBody | None = None  # if it is set, the payload is a preview
    at: datetime

    @property
    def position(self) -> int:
        return self.number


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """A place in a stream: everything up to it was read. A stream without any event has no epoch yet: all zeros."""

    epoch: UUID = _NOTHING_YET
    number: int = 0

    @property
    def is_before_all(self) -> bool:
        """Whether it was given before the stream had its first event: nothing was read, so nothing can be missed."""
        return self.epoch == _NOTHING_YET and self.number == 0

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _POSITION.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text[:80]!r} is not a cursor; pass one that a stream gave, or '{START}'.")
        return cls(epoch=UUID(match[1]), number=int(match[2]))


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamHead:
    """How far a scope's stream goes."""

    scope: Scope
    epoch: UUID = _NOTHING_YET
    number: int = 0

    @property
    def exists(self) -> bool:
        """Whether anything was ever appended."""
        return self.epoch != _NOTHING_YET

    @property
    def position(self) -> Position:
        return Position(epoch=self.epoch, number=self.number)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StreamPage:
    events: tuple[StreamEvent, ...]
    position: Position  # where to go on; past what was pruned, too
    more: bool  # whether there is more already
