"""Events to messages and tool executions. Pure: the rows are what `replay` makes of all events, in whatever pieces the
events came."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from contextbase.conversation.model import (
    MESSAGE_USER,
    RUN_STATE,
    SESSION_REWOUND,
    AgentMessage,
    MessagePart,
    SessionEvent,
    ToolExecution,
)
from contextbase.conversation.rewind_cut import RewindCut
from contextbase.vocabulary import MessagePartKind, MessageRole, MessageState, RunState, ToolStatus

__all__ = ["ENDS_OF_ATTEMPTS", "LONGEST_PART", "Projection", "RowKey", "replay", "small_value"]

RowKey = tuple[UUID, int, str]  # run, attempt, and the executor's name for it

_FINISHED: Final = "run.finished"
ENDS_OF_ATTEMPTS: Final = frozenset({_FINISHED, RUN_STATE})
"""Events that may change rows which they do not name: what was begun is over."""

LONGEST_PART: Final = 256 * 1024
LARGEST_VALUE: Final = 16 * 1024
_MOST_PARTS: Final = 1000
_ATTEMPT_IS_OVER: Final = frozenset({RunState.QUEUED, RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED})


@dataclass(kw_only=True, slots=True)
class Projection:
    """Rows, and which of them events have changed. Rows that a cut hides go before those that changed are put."""

    messages: dict[RowKey, AgentMessage] = field(default_factory=dict)
    tools: dict[RowKey, ToolExecution] = field(default_factory=dict)
    changed_messages: set[RowKey] = field(default_factory=set)
    changed_tools: set[RowKey] = field(default_factory=set)
    cuts: list[RewindCut] = field(default_factory=list)

    def apply(self, event: SessionEvent) -> None:
        if (change := _CHANGES.get(event.kind)) is not None:
            change(self, event)

    def _put(self, event: SessionEvent, message: AgentMessage) -> None:
        key = (message.run_id, message.attempt, message.message_id)
        self.messages[key] = replace(message, updated_at=event.ts)
        self.changed_messages.add(key)

    def _put_tool(self, tool: ToolExecution) -> None:
        key = (tool.run_id, tool.attempt, tool.tool_id)
        self.tools[key] = tool
        self.changed_tools.add(key)

    def _message(self, event: SessionEvent) -> AgentMessage:
        """The message that an event is about; a new one, if this is its first event."""
        message_id = str(event.data["message_id"])
        known = self.messages.get((event.run_id, event.attempt, message_id))
        return known or AgentMessage(
            run_id=event.run_id,
            attempt=event.attempt,
            message_id=message_id,
            position=event.number,
            role=MessageRole.ASSISTANT,
            state=MessageState.STREAMING,
            parts=(),
            created_at=event.ts,
            updated_at=event.ts,
        )

    def said_by_user(self, event: SessionEvent) -> None:
        text, truncated = _cut(str(event.data["text"]))
        part = MessagePart(kind=MessagePartKind.TEXT, part=0, text=text, done=True, truncated=truncated)
        message = replace(self._message(event), role=MessageRole.USER, state=MessageState.DONE, parts=(part,))
        self._put(event, message)

    def grow(self, event: SessionEvent) -> None:
        self._put_part(event, done=False)

    def finish_part(self, event: SessionEvent) -> None:
        self._put_part(event, done=True)

    def _put_part(self, event: SessionEvent, *, done: bool) -> None:
        """A delta goes to the end of its part; what is done replaces all deltas, and nothing changes it."""
        message = self._message(event)
        kind = MessagePartKind.REASONING if event.kind.startswith("reasoning.") else MessagePartKind.TEXT
        number, text = int(str(event.data["part"])), str(event.data["text"])
        before = next((part for part in message.parts if (part.kind, part.part) == (kind, number)), None)
        if before is None and len(message.parts) >= _MOST_PARTS:
            return
        if before is not None and not done:
            if before.done:
                return
            text = before.text + text
        text, truncated = _cut(text)
        part = MessagePart(
            kind=kind,
            part=number,
            text=text,
            done=done,
            truncated=truncated or (before is not None and before.truncated and not done),
        )
        if before is None:
            parts = (*message.parts, part)
        else:
            parts = tuple(part if one is before else one for one in message.parts)
        self._put(event, replace(message, parts=parts))

    def stop_message(self, event: SessionEvent) -> None:
        self._put(event, replace(self._message(event), state=MessageState.DONE))

    def restart_message(self, event: SessionEvent) -> None:
        """What came before a cut is said again."""
        self._put(event, replace(self._message(event), parts=(), state=MessageState.STREAMING))

    def start_tool(self, event: SessionEvent) -> None:
        tool_id = str(event.data["tool_id"])
        if (event.run_id, event.attempt, tool_id) in self.tools:
            return
        given, truncated = small_value(event.data.get("input"))
        self._put_tool(
            ToolExecution(
                run_id=event.run_id,
                attempt=event.attempt,
                tool_id=tool_id,
                position=event.number,
                name=str(event.data["name"]),
                title=str(event.data.get("title", ""))[:_LONGEST_TITLE],
                input=given if isinstance(given, dict) else {"value": given},
                status=ToolStatus.RUNNING,
                output=None,
                truncated=truncated,
                started_at=event.ts,
                ended_at=None,
            )
        )

    def end_tool(self, event: SessionEvent) -> None:
        """Nothing happens for a tool that has ended, or that nobody started."""
        tool = self.tools.get((event.run_id, event.attempt, str(event.data["tool_id"])))
        if tool is None or tool.status is not ToolStatus.RUNNING:
            return
        output, truncated = small_value(event.data.get("output"))
        self._put_tool(
            replace(
                tool,
                status=ToolStatus(str(event.data["status"])),
                output=output,
                truncated=tool.truncated or truncated or event.data.get("truncated") is True,
                ended_at=event.ts,
            )
        )

    def end_attempt(self, event: SessionEvent) -> None:
        """Nothing more comes of what the attempt had begun."""
        for message in list(self.messages.values()):
            if message.run_id == event.run_id and message.state is MessageState.STREAMING:
                self._put(event, replace(message, state=MessageState.DONE))
        for tool in list(self.tools.values()):
            if tool.run_id == event.run_id and tool.status is ToolStatus.RUNNING:
                self._put_tool(replace(tool, status=ToolStatus.INTERRUPTED, ended_at=event.ts))

    def move_run(self, event: SessionEvent) -> None:
        if event.data["state"] in _ATTEMPT_IS_OVER:
            self.end_attempt(event)

    def rewind(self, event: SessionEvent) -> None:
        cut = RewindCut.of(event)
        self.cuts.append(cut)
        for key in [key for key, message in self.messages.items() if cut.hides(message)]:
            del self.messages[key]
            self.changed_messages.discard(key)
        for key in [key for key, tool in self.tools.items() if cut.hides(tool)]:
            del self.tools[key]
            self.changed_tools.discard(key)


_CHANGES: Final[Mapping[str, Callable[[Projection, SessionEvent], None]]] = {
    MESSAGE_USER: Projection.said_by_user,
    "message.delta": Projection.grow,
    "message.done": Projection.finish_part,
    "message.stop": Projection.stop_message,
    "message.restarted": Projection.restart_message,
    "reasoning.delta": Projection.grow,
    "reasoning.done": Projection.finish_part,
    "tool.start": Projection.start_tool,
    "tool.end": Projection.end_tool,
    _FINISHED: Projection.end_attempt,
    RUN_STATE: Projection.move_run,
    SESSION_REWOUND: Projection.rewind,
}
_LONGEST_TITLE: Final = 500


def replay(events: Iterable[SessionEvent]) -> Projection:
    """All rows of a session, from its events in order."""
    projection = Projection()
    for event in events:
        projection.apply(event)
    return projection


def _cut(text: str) -> tuple[str, bool]:
    return (text, False) if len(text) <= LONGEST_PART else (text[:LONGEST_PART], True)


def small_value(value: object) -> tuple[object, bool]:
    """The value if a row can hold it, else the beginning of it as text."""
    if isinstance(value, str):
        return (value, False) if len(value) <= LARGEST_VALUE else (value[:LARGEST_VALUE], True)
    text = json.dumps(value, ensure_ascii=False)
    return (value, False) if len(text) <= LARGEST_VALUE else (text[:LARGEST_VALUE], True)
