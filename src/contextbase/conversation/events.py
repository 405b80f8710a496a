"""The kinds of events that executors send, and the check of what they claim.

An executor shares its account with the agent, so an event may be anything. It is stored if it has the shape of its
kind; fields that the kind does not have are left out.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from contextbase.conversation.model import CONVERSATION_REBUILT, MESSAGE_STEERED, RunEvent
from contextbase.errors import InvalidInput, TooLarge

__all__ = ["LARGEST_EVENT_BYTES", "REFUSED", "checked_event"]

REFUSED: Final = "run.event_refused"
"""Stands for an event of an executor that was not stored, so that its number is not asked for again."""

LARGEST_EVENT_BYTES: Final = 4 * 1024 * 1024
_LONGEST_ID: Final = 200
_LONGEST_LINE: Final = 2000
_MOST_DEPTH: Final = 40
_LARGEST_NUMBER: Final = 2**53

_QUESTION_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_MOST_OPTIONS: Final = 100
_MOST_TODOS: Final = 500

_Check = Callable[[object], bool]


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_ID and value.isprintable()


def _is_uuid(value: object) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False


def _is_line(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_LINE


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_NUMBER


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST_NUMBER


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_question_id(value: object) -> bool:
    return isinstance(value, str) and _QUESTION_ID.fullmatch(value) is not None


def _is_option(value: object) -> bool:
    """A choice that a question offers."""
    if not isinstance(value, dict) or not value.keys() <= {"value", "label", "description"}:
        return False
    return _is_line(value.get("value")) and _is_line(value.get("label")) and _is_line(value.get("description", ""))


def _is_options(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_OPTIONS and all(map(_is_option, value))


def _is_todo(value: object) -> bool:
    """An item of a todo list."""
    if not isinstance(value, dict) or not value.keys() <= {"todo_id", "content", "status", "order"}:
        return False
    is_shown = _is_id(value.get("todo_id")) and _is_text(value.get("content")) and _TODO(value.get("status"))
    return is_shown and _is_number(value.get("order", 0))


def _is_todos(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_TODOS and all(map(_is_todo, value))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_anything(value: object) -> bool:  # noqa: ARG001 - a check like the others
    return True


def _one_of(*words: str) -> _Check:
    return lambda value: isinstance(value, str) and value in words


def _or_null(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


_PART: Final[dict[str, _Check]] = {"message_id": _is_id, "part": _is_number, "text": _is_text}
_MESSAGE: Final[dict[str, _Check]] = {"message_id": _is_id}
_TODO: Final = _one_of("todo", "doing", "done", "canceled")

_REQUIRED: Final[dict[str, dict[str, _Check]]] = {
    "run.status": {"state": _one_of("running", "finished")},
    "run.error": {"code": _is_id, "message": _is_text},
    "run.finished": {"outcome": _one_of("completed", "canceled", "failed")},
    "message.delta": _PART,
    "message.done": _PART,
    "message.stop": _MESSAGE,
    "message.restarted": _MESSAGE,
    MESSAGE_STEERED: {"steer_id": _is_uuid},
    "reasoning.delta": _PART,
    "reasoning.done": _PART,
    "step.start": {"step": _is_number},
    "step.finish": {"step": _is_number},
    "tool.start": {"tool_id": _is_id, "name": _is_id},
    "tool.end": {"tool_id": _is_id, "status": _one_of("ok", "error")},
    "todo.snapshot": {"todos": _is_todos},
    "todo.update": {"todo_id": _is_id, "status": _TODO},
    "human_loop.requested": {
        "question_id": _is_question_id,
        "kind": _one_of("question", "permission"),
        "prompt": _is_text,
    },
    "usage": {"model": _is_line},
    "rate_limited": {"retry_after": _is_seconds},
    CONVERSATION_REBUILT: {"reason": _is_id},
}
_OPTIONAL: Final[dict[str, dict[str, _Check]]] = {
    "run.status": {"sdk_session_id": _or_null(_is_id), "cli_version": _or_null(_is_id), "provider": _is_id},
    "run.error": {"retryable": _is_flag},
    "run.finished": {"sdk_session_id": _or_null(_is_id), "duration_ms": _is_number},
    "tool.start": {"title": _is_text, "input": _is_anything, "raw": _is_anything},
    "tool.end": {"output": _is_anything, "truncated": _is_flag},
    "todo.update": {"content": _is_text, "order": _is_number},
    "human_loop.requested": {"options": _is_options, "multiple": _is_flag, "context": _is_object},
    "usage": dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), _is_number),
}


def checked_event(raw: object) -> RunEvent:
    """What an executor sent, if it has the shape of its kind. Raises `InvalidInput` or `TooLarge`."""
    if not isinstance(raw, dict):
        raise InvalidInput("An event is a JSON object.")
    kind, n, data = raw.get("type"), raw.get("n"), raw.get("data")
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= _LARGEST_NUMBER:
        raise InvalidInput("An event has a number from 1 on, called 'n'.")
    if not isinstance(kind, str) or kind not in _REQUIRED:
        raise InvalidInput(f"{str(kind)[:100]!r} is not a kind of event that an executor sends.")
    if not isinstance(data, dict):
        raise InvalidInput(f"The event '{kind}' has no object called 'data'.")
    return RunEvent(n=n, ts=_time(raw.get("ts")), kind=kind, data=_fields(kind, data))


def _fields(kind: str, data: Mapping[object, object]) -> dict[str, object]:
    kept: dict[str, object] = {}
    required, optional = _REQUIRED[kind], _OPTIONAL.get(kind, {})
    for name, check in (required | optional).items():
        if name not in data:
            if name in required:
                raise InvalidInput(f"The event '{kind}' lacks '{name}'.")
            continue
        if not check(data[name]):
            raise InvalidInput(f"The field '{name}' of the event '{kind}' is not what it should be.")
        kept[name] = _storable(data[name])
    try:
        size = len(json.dumps(kept, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The event '{kind}' is not JSON.") from error
    if size > LARGEST_EVENT_BYTES:
        raise TooLarge(f"The event '{kind}' has {size} bytes; {LARGEST_EVENT_BYTES} is the most.")
    return kept


def _time(text: object) -> datetime:
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
        if time is not None and time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput("An event has its time, with its zone, as 'ts'.")


def _storable(value: object, depth: int = 0) -> object:
    """The same without what the database cannot hold: NUL, and halves of surrogate pairs."""
    if depth > _MOST_DEPTH:
        raise InvalidInput(f"An event is nested more than {_MOST_DEPTH} deep.")
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()
    if isinstance(value, dict):
        return {str(_storable(str(name))): _storable(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list):
        return [_storable(one, depth + 1) for one in value]
    return value
