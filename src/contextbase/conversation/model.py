"""Events of a session, and the rows that are made of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from contextbase.vocabulary import MessagePartKind, MessageRole, MessageState, ToolStatus

__all__ = [
    "CONVERSATION_REBUILT",
    "MESSAGE_STEERED",
    "MESSAGE_USER",
    "RUN_STATE",
    "SESSION_REWOUND",
    "AgentMessage",
    "MessagePart",
    "RunEvent",
    "SessionEvent",
    "ToolExecution",
]

MESSAGE_USER: Final = "message.user"
"""A person's message: written by the server, never by an executor."""

MESSAGE_STEERED: Final = "message.steered"
"""A person's message went into the working turn: an executor says so, the server adds the text."""

RUN_STATE: Final = "run.state"
"""A run moved to another state: written by the server."""


SESSION_REWOUND: Final = "session.rewound"
"""The conversation went back to a message of the event's run: written by the server. `runs` are hidden, and what that
run has after the position `keep`, unless it is null."""

CONVERSATION_REBUILT: Final = "conversation.rebuilt"
"""The agent program did not know what was said before, and was told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvent:
    """What an executor says, checked: a claim, of the right shape."""

    n: int  # in the executor's journal
    ts: datetime
    kind: str
    data: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionEvent:
    """An event in a session's stream, about one attempt of a run, with its whole payload."""

    number: int
    kind: str
    run_id: UUID
    attempt: int
    ts: datetime
    data: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class MessagePart:
    kind: MessagePartKind
    part: int
    text: str
    done: bool
    truncated: bool = False  # the events have more


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentMessage:
    run_id: UUID
    attempt: int
    message_id: str
    position: int  # of its first event
    role: MessageRole
    state: MessageState
    parts: tuple[MessagePart, ...]
    created_at: datetime
    updated_at: datetime

    @property
    def text(self) -> str:
        """What was said, without what was only thought."""
        return "\n\n".join(part.text for part in self.parts if part.kind is MessagePartKind.TEXT and part.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolExecution:
    run_id: UUID
    attempt: int
    tool_id: str
    position: int
    name: str
    title: str
    input: Mapping[str, object]
    status: ToolStatus
    output: object | None
    truncated: bool
    started_at: datetime
    ended_at: datetime | None
