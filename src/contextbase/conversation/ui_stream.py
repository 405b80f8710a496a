"""A run's events as chunks of the AI SDK's UI message stream, version 1. Pure.

A run is one assistant message. A message of the agent is a step of it, so that what is said again after a cut takes the
place of what was said before.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from contextbase.conversation.model import (
    CONVERSATION_REBUILT,
    MESSAGE_STEERED,
    RUN_STATE,
    SESSION_REWOUND,
    SessionEvent,
)
from contextbase.conversation.projection import LONGEST_PART, small_value
from contextbase.vocabulary import RunState

__all__ = ["Chunk", "RunOutcome", "RunStream", "joined", "user_message", "user_message_id", "without_rewound"]

Chunk = dict[str, Any]

_ENDED: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED})
_OUR: Final = "contextbase"
_INTERRUPTED: Final = "The run ended before the tool did."
_NO_WORDS: Final = "The run failed."
_NOTES: Final = {
    CONVERSATION_REBUILT: "The agent had no memory of the conversation, and was told it.",
    SESSION_REWOUND: "The conversation went back to here.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutcome:
    """What is known of a run beside its events."""

    state: RunState
    message: str | None = None
    landed: Mapping[str, object] | None = None
    metadata: Mapping[str, object]  # usage, cost and duration, once it has ended


@dataclass(slots=True)
class _OpenPart:
    chunk_id: str
    text: str = ""


_PartKey = tuple[str, int, str, int]  # text or reasoning, attempt, message, part


def user_message_id(run_id: UUID) -> str:
    return f"{run_id}:prompt"


def user_message(event: SessionEvent) -> Chunk:
    """A person's message, as the client's own look."""
    parts: list[Chunk] = [{"type": "text", "text": str(event.data.get("text", ""))}]
    metadata = {"run_id": str(event.run_id), "created_at": _time(event.ts)}
    return {"id": user_message_id(event.run_id), "role": "user", "metadata": metadata, "parts": parts}


def without_rewound(events: Iterable[SessionEvent]) -> list[SessionEvent]:
    """A run's events without what rewinds hide: messages, tools and questions that began after the position that stays,
    and what became of todo lists after it."""
    kept: list[SessionEvent] = []
    for event in events:
        if event.kind == SESSION_REWOUND and isinstance(keep := event.data.get("keep"), int):
            begun = {_begun(one) for one in kept if one.number <= keep}
            kept = [one for one in kept if one.number <= keep or _begun(one) is None or _begun(one) in begun]
        kept.append(event)
    return kept


def joined(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The same with as few deltas as there can be: what is over is sent whole."""
    found: list[Chunk] = []
    for chunk in chunks:
        before = found[-1] if found else None
        if "delta" in chunk and before and before["type"] == chunk["type"] and before["id"] == chunk["id"]:
            found[-1] = {**before, "delta": before["delta"] + chunk["delta"]}
        else:
            found.append(chunk)
    return found


class RunStream:
    """Give it all events of one run in order, then the run's outcome."""

    def __init__(self, run_id: UUID) -> None:
        self._run_id = run_id
        self._is_in_step = False
        self._has_tools = False  # in this step
        self._message: tuple[int, str] | None = None  # that the step is about
        self._said: set[tuple[int, str]] = set()
        self._parts: dict[_PartKey, _OpenPart] = {}
        self._over: set[_PartKey] = set()
        self._tools: dict[str, None] = {}  # at work, in order
        self._known_tools: set[str] = set()
        self._questions: dict[str, Mapping[str, object]] = {}
        self._todos: dict[str, dict[str, Any]] = {}

    def start(self, *, created_at: datetime, provider: str, model: str | None) -> list[Chunk]:
        metadata: Chunk = {"run_id": str(self._run_id), "created_at": _time(created_at), "provider": provider}
        if model is not None:
            metadata["model"] = model
        return [{"type": "start", "messageId": str(self._run_id), "messageMetadata": metadata}]

    def chunks(self, event: SessionEvent) -> list[Chunk]:
        """None for an event that shows nothing."""
        change = _CHANGES.get(event.kind)
        return [] if change is None else change(self, event)

    def end(self, outcome: RunOutcome) -> list[Chunk]:
        """After the event of the run's end."""
        chunks = self._end_attempt()
        if outcome.landed is not None:
            chunks.append({"type": "data-landing", "id": str(self._run_id), "data": dict(outcome.landed)})
        finish: Chunk = {"type": "finish", "messageMetadata": dict(outcome.metadata)}
        if outcome.state is RunState.CANCELED:
            return [*chunks, {"type": "abort", "reason": "canceled"}, {**finish, "finishReason": "interrupted"}]
        if outcome.state is RunState.FAILED:
            error = {"type": "error", "errorText": outcome.message or _NO_WORDS}
            return [*chunks, {**finish, "finishReason": "error"}, error]
        return [*chunks, {**finish, "finishReason": "stop"}]

    def move(self, event: SessionEvent) -> list[Chunk]:
        data = {"run_id": str(self._run_id), "attempt": event.attempt, **event.data}
        chunks = self._end_attempt() if event.data["state"] in {*_ENDED, RunState.QUEUED} else []
        return [*chunks, {"type": "data-run", "id": str(self._run_id), "data": data}]

    def say(self, event: SessionEvent) -> list[Chunk]:
        return self._put_text(event, is_done=False)

    def finish_part(self, event: SessionEvent) -> list[Chunk]:
        return self._put_text(event, is_done=True)

    def _put_text(self, event: SessionEvent, *, is_done: bool) -> list[Chunk]:
        kind = "reasoning" if event.kind.startswith("reasoning.") else "text"
        message_id, number = str(event.data["message_id"]), int(str(event.data["part"]))
        key, text = (kind, event.attempt, message_id, number), str(event.data["text"])
        part = self._parts.get(key)
        if key in self._over or not (text or part):
            return []
        chunks = self._step_of((event.attempt, message_id))
        if is_done:
            said = "" if part is None else part.text
            if not (text.startswith(said) or said.startswith(text)):
                chunks += self._close(key, is_replaced=True)
                part, said = None, ""
            text = text[len(said) :]
            self._over.add(key)
        if part is None:
            part = self._parts[key] = _OpenPart(f"{event.attempt}.{message_id}.{number}")
            chunks.append({"type": f"{kind}-start", "id": part.chunk_id})
        if text := text[: LONGEST_PART - len(part.text)]:
            part.text += text
            chunks.append({"type": f"{kind}-delta", "id": part.chunk_id, "delta": text})
        return [*chunks, *self._close(key)] if is_done else chunks

    def stop_message(self, event: SessionEvent) -> list[Chunk]:
        message = (event.attempt, str(event.data["message_id"]))
        return [chunk for key in list(self._parts) if key[1:3] == message for chunk in self._close(key)]

    def restart_message(self, event: SessionEvent) -> list[Chunk]:
        message = (event.attempt, str(event.data["message_id"]))
        mine = [key for key in self._parts if key[1:3] == message]
        if message != self._message or self._has_tools:  # more than this message would be taken back
            chunks = [chunk for key in mine for chunk in self._close(key, is_replaced=True)]
        else:
            for key in mine:
                del self._parts[key]
            chunks = [{"type": "reset-step"}]
        self._over = {key for key in self._over if key[1:3] != message}
        return chunks

    def steer(self, event: SessionEvent) -> list[Chunk]:
        part = {"type": "text", "text": str(event.data.get("text", ""))}
        message_id = user_message_id(UUID(str(event.data["steer_id"])))
        return [{"type": "steering-message", "id": message_id, "parts": [part]}]

    def start_tool(self, event: SessionEvent) -> list[Chunk]:
        tool_id = _tool_id(event)
        if tool_id in self._known_tools:
            return []
        chunks = self._opened_step()
        self._known_tools.add(tool_id)
        self._tools[tool_id] = None
        self._has_tools = True
        given, is_cut = small_value(event.data.get("input"))
        tool: Chunk = {
            "type": "tool-input-available",
            "toolCallId": tool_id,
            "toolName": str(event.data["name"]),
            "input": given,
            "dynamic": True,
            "providerExecuted": True,  # by the agent: the client has nothing to do
        }
        if title := event.data.get("title"):
            tool["title"] = str(title)
        return [*chunks, tool | _cut_note(is_cut)]

    def end_tool(self, event: SessionEvent) -> list[Chunk]:
        tool_id = _tool_id(event)
        if tool_id not in self._tools:
            return []
        del self._tools[tool_id]
        output, is_cut = small_value(event.data.get("output"))
        note = _cut_note(is_cut or event.data.get("truncated") is True)
        end = {"toolCallId": tool_id, "dynamic": True, "providerExecuted": True, **note}
        if event.data["status"] == "ok":
            return [{"type": "tool-output-available", **end, "output": output}]
        return [{"type": "tool-output-error", **end, "errorText": output if isinstance(output, str) else str(output)}]

    def end_turn(self, event: SessionEvent) -> list[Chunk]:
        del event
        return self._end_attempt()

    def ask(self, event: SessionEvent) -> list[Chunk]:
        question_id = str(event.data["question_id"])
        self._questions[question_id] = event.data
        return [self._question(question_id, {"state": "pending"})]

    def settle_question(self, event: SessionEvent) -> list[Chunk]:
        """Who says no outcome has answered."""
        told = {name: event.data[name] for name in ("answer", "by") if event.data.get(name) is not None}
        told["state"] = event.data.get("outcome", "answered")
        return [self._question(str(event.data["question_id"]), told)]

    def _question(self, question_id: str, told: Mapping[str, object]) -> Chunk:
        asked = self._questions.get(question_id, {})
        data = {"run_id": str(self._run_id), "question_id": question_id, **asked, **told}
        return {"type": "data-question", "id": question_id, "data": data}

    def list_todos(self, event: SessionEvent) -> list[Chunk]:
        given = event.data["todos"]
        items = [dict(one) for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        self._todos = {str(one.get("todo_id")): one for one in items}
        return self._all_todos()

    def change_todo(self, event: SessionEvent) -> list[Chunk]:
        todo_id = str(event.data["todo_id"])
        self._todos[todo_id] = {**self._todos.get(todo_id, {}), **event.data}
        return self._all_todos()

    def _all_todos(self) -> list[Chunk]:
        return [{"type": "data-todos", "id": "todos", "data": {"todos": list(self._todos.values())}}]

    def wait_for_model(self, event: SessionEvent) -> list[Chunk]:
        return [{"type": "data-rate-limited", "id": "rate-limited", "data": dict(event.data)}]

    def name_files(self, event: SessionEvent) -> list[Chunk]:
        return [{"type": "data-files", "id": f"files-{event.number}", "data": dict(event.data)}]

    def note(self, event: SessionEvent) -> list[Chunk]:
        return [{"type": "data-note", "id": f"note-{event.number}", "data": {**event.data, "text": _NOTES[event.kind]}}]

    def _step_of(self, message: tuple[int, str]) -> list[Chunk]:
        """A message that begins ends the step before it."""
        if message in self._said:
            return self._opened_step()
        chunks = [*self._close_all(), *self._closed_step(), *self._opened_step()]
        self._said.add(message)
        self._message = message
        return chunks

    def _opened_step(self) -> list[Chunk]:
        if self._is_in_step:
            return []
        self._is_in_step = True
        return [{"type": "start-step"}]

    def _closed_step(self) -> list[Chunk]:
        if not self._is_in_step:
            return []
        self._is_in_step = self._has_tools = False
        self._message = None
        return [{"type": "finish-step"}]

    def _end_attempt(self) -> list[Chunk]:
        """Nothing more comes of what was begun."""
        chunks = self._close_all()
        for tool_id in self._tools:
            end = {"toolCallId": tool_id, "dynamic": True, "providerExecuted": True}
            chunks.append({"type": "tool-output-error", **end, "errorText": _INTERRUPTED})
        self._tools.clear()
        return [*chunks, *self._closed_step()]

    def _close_all(self) -> list[Chunk]:
        return [chunk for key in list(self._parts) for chunk in self._close(key)]

    def _close(self, key: _PartKey, *, is_replaced: bool = False) -> list[Chunk]:
        part = self._parts.pop(key, None)
        if part is None:
            return []
        chunk: Chunk = {"type": f"{key[0]}-end", "id": part.chunk_id}
        return [chunk | ({"providerMetadata": {_OUR: {"replaced": True}}} if is_replaced else {})]


_CHANGES: Final[Mapping[str, Callable[[RunStream, SessionEvent], list[Chunk]]]] = {
    RUN_STATE: RunStream.move,
    "message.delta": RunStream.say,
    "message.done": RunStream.finish_part,
    "message.stop": RunStream.stop_message,
    "message.restarted": RunStream.restart_message,
    MESSAGE_STEERED: RunStream.steer,
    "reasoning.delta": RunStream.say,
    "reasoning.done": RunStream.finish_part,
    "tool.start": RunStream.start_tool,
    "tool.end": RunStream.end_tool,
    "run.finished": RunStream.end_turn,
    "human_loop.requested": RunStream.ask,
    "human_loop.resolved": RunStream.settle_question,
    "todo.snapshot": RunStream.list_todos,
    "todo.update": RunStream.change_todo,
    "rate_limited": RunStream.wait_for_model,
    "workspace.changed": RunStream.name_files,
    CONVERSATION_REBUILT: RunStream.note,
    SESSION_REWOUND: RunStream.note,
}


def _begun(event: SessionEvent) -> tuple[int, object, object] | None:
    """What message, tool or question an event is about. Each change of a todo list is on its own."""
    if event.kind.startswith("todo."):
        return (event.attempt, "todos", event.number)
    named = [(kind, event.data[kind]) for kind in ("message_id", "tool_id", "question_id") if kind in event.data]
    return (event.attempt, *named[0]) if named else None


def _tool_id(event: SessionEvent) -> str:
    """Each attempt names its tools from the beginning, perhaps."""
    tool_id = str(event.data["tool_id"])
    return tool_id if event.attempt <= 1 else f"{tool_id}@{event.attempt}"


def _cut_note(is_cut: bool) -> Chunk:
    return {"toolMetadata": {"truncated": True}} if is_cut else {}


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
