"""What Opencode's server says, as our events. Pure: its events in, ours out."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from contextbase.agents.mcp_servers import OWN_SERVER
from contextbase.agents.model import TurnEnd, TurnFailure, TurnOutcome
from contextbase.agents.shortening import shortened, shortened_values
from contextbase.agents.spoken import Event, SpokenMessages, tool_end
from contextbase.agents.todo_lists import TodoLists, listed_todos

__all__ = ["OpencodeTranslator"]

_TOOLS: Final = {
    "bash": "bash",
    "read": "read",
    "edit": "edit",
    "multiedit": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "write": "write",
    "grep": "search",
    "glob": "search",
    "list": "search",
    "webfetch": "web",
    "websearch": "web",
    "todowrite": "todo",
    "todoread": "todo",
}
_TITLE_FROM: Final = ("command", "filePath", "pattern", "path", "url", "query", "description")
_AT_WORK: Final = frozenset({"message.updated", "session.error"})
_TEXTS: Final = {"text": "message", "reasoning": "reasoning"}
_DENIED: Final = frozenset({401, 403})
_BUSY: Final = 429
_SERVER_FAULT: Final = 500


class OpencodeTranslator:
    """Of one turn of one session. `key` makes message ids unique in a session."""

    def __init__(self, key: str, model: str) -> None:
        self.session_id: str | None = None
        self.end: TurnEnd | None = None
        self._model = model
        self._spoken = SpokenMessages(key)
        self._answers: set[str] = set()  # its ids of the agent's messages; the others are the user's
        self._kinds: dict[str, str] = {}  # of parts that are text
        self._tools: dict[str, bool] = {}  # that began, and whether they ended
        self._failure: TurnFailure | None = None
        self._has_begun = False  # what it said of the turn before may come late
        self._todos = TodoLists()
        self._used = dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), 0)

    def events(self, event: Mapping[str, Any]) -> Iterator[Event]:
        given = event.get("properties")
        if not isinstance(given, dict) or given.get("sessionID") != self.session_id:
            return  # of the program itself, or of a helper of the agent
        self._has_begun |= event.get("type") in _AT_WORK
        match event.get("type"):
            case "message.updated":
                about = given.get("info") or {}
                if about.get("role") == "assistant":
                    self._answers.add(str(about.get("id")))
            case "message.part.updated":
                yield from self._part(given.get("part") or {})
            case "message.part.delta" if given.get("field") == "text":
                part_id = str(given.get("partID"))
                if part_id in self._kinds:
                    yield from self._spoken.said(part_id, self._kinds[part_id], str(given.get("delta", "")))
            case "todo.updated":
                yield self._todos.snapshot(listed_todos(given.get("todos")))
            case "session.status" if (given.get("status") or {}).get("type") == "retry":
                yield from self._spoken.restarted()
                if "rate" in str(given["status"].get("message")).lower():
                    yield "rate_limited", {"retry_after": 0}
            case "session.error":
                self._failure = _failure(given.get("error") or {})
            case "session.idle" if self._has_begun:
                yield from self._idle()

    def closing(self) -> Iterator[Event]:
        """For messages and tools that were cut off."""
        yield from self._spoken.stopped()
        for tool_id in [tool_id for tool_id, has_ended in self._tools.items() if not has_ended]:
            self._tools[tool_id] = True
            yield tool_end(tool_id, "Interrupted.", is_error=True)

    def _part(self, part: Mapping[str, Any]) -> Iterator[Event]:
        kind, part_id = str(part.get("type")), str(part.get("id"))
        if str(part.get("messageID")) not in self._answers:
            return
        if kind in _TEXTS:
            self._kinds[part_id] = _TEXTS[kind]
            if (part.get("time") or {}).get("end"):
                yield from self._spoken.done(part_id, _TEXTS[kind], str(part.get("text") or ""))
        elif kind == "tool":
            yield from self._tool(part)
        elif kind == "step-finish":
            yield from self._spoken.stopped()
            self._count(part.get("tokens") or {})

    def _tool(self, part: Mapping[str, Any]) -> Iterator[Event]:
        state = part.get("state") or {}
        tool_id, name, status = str(part.get("callID")), str(part.get("tool")), state.get("status")
        if status == "pending" or self._tools.get(tool_id):
            return
        if tool_id not in self._tools:
            yield from self._spoken.stopped()  # the end of its text is told late
            self._tools[tool_id] = False
            given: Mapping[str, Any] = state.get("input") or {}
            title = next((str(given[each]) for each in _TITLE_FROM if given.get(each)), name)
            yield (
                "tool.start",
                {
                    "tool_id": tool_id,
                    "name": _canonical(name),
                    "title": shortened(title, 200)[0],
                    "input": shortened_values(given),
                    "raw": name,
                },
            )
        if status in {"completed", "error"}:
            self._tools[tool_id] = True
            output = str(state.get("output") or state.get("error") or "").removesuffix("\n")
            yield tool_end(tool_id, output, is_error=status == "error")

    def _count(self, tokens: Mapping[str, Any]) -> None:
        cache = tokens.get("cache") or {}
        self._used["input_tokens"] += int(tokens.get("input") or 0)
        self._used["output_tokens"] += int(tokens.get("output") or 0) + int(tokens.get("reasoning") or 0)
        self._used["cache_read_tokens"] += int(cache.get("read") or 0)
        self._used["cache_write_tokens"] += int(cache.get("write") or 0)

    def _idle(self) -> Iterator[Event]:
        yield from self.closing()
        if any(self._used.values()):
            yield "usage", {"model": self._model, **self._used}
        outcome = TurnOutcome.COMPLETED if self._failure is None else TurnOutcome.FAILED
        self.end = TurnEnd(outcome=outcome, sdk_session_id=self.session_id, failure=self._failure)


def _canonical(name: str) -> str:
    if name.startswith(f"{OWN_SERVER}_"):
        return f"mcp.{OWN_SERVER}.{name.removeprefix(f'{OWN_SERVER}_')}"
    return _TOOLS.get(name, "other")


def _failure(error: Mapping[str, Any]) -> TurnFailure:
    name, about = str(error.get("name")), error.get("data") or {}
    status = about.get("statusCode")
    message = shortened(str(about.get("message") or name), 2000)[0]
    code, retryable = "agent_error", False
    if name == "ProviderAuthError" or status in _DENIED:
        code = "model_denied"
    elif status == _BUSY:
        code, retryable = "rate_limited", True
    elif name == "APIError" and status is None:
        code, retryable = "model_unreachable", True
    elif name in {"APIError", "ContextOverflowError", "MessageOutputLengthError"}:
        code, retryable = "model_error", isinstance(status, int) and status >= _SERVER_FAULT
    return TurnFailure(code=code, message=message, is_retryable=retryable)
