"""What Codex's app server says, as our events. Pure: messages in, events out."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from contextbase.agents.model import TurnEnd, TurnFailure, TurnOutcome
from contextbase.agents.shortening import shortened, shortened_values
from contextbase.agents.spoken import Event, SpokenMessages, tool_end
from contextbase.agents.todo_lists import TodoLists, listed_todos

__all__ = ["CodexTranslator"]

_TEXTS: Final = {"agentMessage": "message", "plan": "message", "reasoning": "reasoning"}
_DELTAS: Final = frozenset(
    {"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/textDelta"}
)
_TOOLS: Final = {
    "commandExecution": "bash",
    "fileChange": "edit",
    "webSearch": "web",
    "imageView": "read",
    "mcpToolCall": "other",
    "dynamicToolCall": "other",
    "collabAgentToolCall": "other",
}
_INPUTS: Final = ("command", "cwd", "changes", "arguments", "query", "path", "prompt")
_BAD_ENDS: Final = frozenset({"failed", "declined"})
_DENIED: Final = frozenset({"unauthorized", 401, 403})
_BUSY: Final = frozenset({"rateLimitExceeded", "usageLimitExceeded", 429})
_LATER: Final = frozenset({"serverOverloaded", "internalServerError", "flexUnavailable", "policyCapacityUnavailable"})
_OURS: Final = frozenset({"badRequest", "contextWindowExceeded", "modelNotFound", "cyberPolicy"})
_SERVER_FAULT: Final = 500


class CodexTranslator:
    """Of one turn of one thread. `key` makes message ids unique in a session."""

    def __init__(self, key: str, model: str) -> None:
        self.thread_id: str | None = None
        self.turn_id: str | None = None
        self.end: TurnEnd | None = None
        self._model = model
        self._spoken = SpokenMessages(key)
        self.items: dict[str, Mapping[str, Any]] = {}  # tools that began, as Codex told of them
        self._tools: dict[str, None] = {}  # that run, in order
        self._todos = TodoLists()
        self._used = dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), 0)

    def events(self, line: Mapping[str, Any]) -> Iterator[Event]:
        given = line.get("params")
        if not isinstance(given, dict) or given.get("threadId") != self.thread_id:
            return  # of the program itself, or of a helper of the agent
        method = str(line.get("method"))
        item: Mapping[str, Any] = given.get("item") or {}
        if method in _DELTAS:
            kind = "reasoning" if "reasoning" in method else "message"
            yield from self._spoken.said(str(given.get("itemId")), kind, str(given.get("delta", "")))
            return
        match method:
            case "turn/started":
                self.turn_id = str((given.get("turn") or {}).get("id"))
            case "item/reasoning/summaryPartAdded" if given.get("summaryIndex"):
                yield from self._spoken.said(str(given.get("itemId")), "reasoning", "\n\n")
            case "item/started":
                yield from self._item_started(item)
            case "item/completed":
                yield from self._item_completed(item)
            case "turn/plan/updated":
                yield self._todos.snapshot(listed_todos(given.get("plan"), content="step"))
            case "thread/tokenUsage/updated":
                self._count(given)
            case "error" if given.get("willRetry"):
                yield from self._retried(given.get("error") or {})
            case "turn/completed":
                yield from self._completed(given.get("turn") or {})

    def closing(self) -> Iterator[Event]:
        """For messages and tools that were cut off."""
        yield from self._spoken.stopped()
        for tool_id in self._tools:
            yield tool_end(tool_id, "Interrupted.", is_error=True)
        self._tools.clear()

    def _item_started(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind, tool_id = str(item.get("type")), str(item.get("id"))
        if kind in _TOOLS and tool_id not in self._tools:
            yield from self._spoken.stopped()  # an answer of the model ends with its tools
            self._tools[tool_id] = None
            self.items[tool_id] = item
            given = {name: item[name] for name in _INPUTS if item.get(name) is not None}
            yield (
                "tool.start",
                {
                    "tool_id": tool_id,
                    "name": _canonical(kind, item),
                    "title": shortened(_title(kind, item), 200)[0],
                    "input": shortened_values(given),
                    "raw": str(item.get("tool") or kind),
                },
            )

    def _item_completed(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind, item_id = str(item.get("type")), str(item.get("id"))
        if kind in _TEXTS:
            yield from self._spoken.done(item_id, _TEXTS[kind], _text(item))
        elif kind in _TOOLS:
            yield from self._item_started(item)  # if it was never said to start
            del self._tools[item_id]
            is_error = item.get("status") in _BAD_ENDS or item.get("exitCode") not in (None, 0)
            yield tool_end(item_id, _output(item), is_error=is_error)

    def _count(self, given: Mapping[str, Any]) -> None:
        if given.get("turnId") != self.turn_id:
            return  # what earlier turns used is told again when a thread is resumed
        last = (given.get("tokenUsage") or {}).get("last") or {}
        cached = int(last.get("cachedInputTokens") or 0)
        self._used["input_tokens"] += int(last.get("inputTokens") or 0) - cached
        self._used["output_tokens"] += int(last.get("outputTokens") or 0)
        self._used["cache_read_tokens"] += cached
        self._used["cache_write_tokens"] += int(last.get("cacheWriteInputTokens") or 0)

    def _retried(self, error: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._spoken.restarted()
        if set(_facts(error)) & _BUSY:
            yield "rate_limited", {"retry_after": 0}

    def _completed(self, turn: Mapping[str, Any]) -> Iterator[Event]:
        yield from self.closing()
        if any(self._used.values()):
            yield "usage", {"model": self._model, **self._used}
        failure = None if turn.get("status") == "completed" else _failure(turn)
        outcome = TurnOutcome.COMPLETED if failure is None else TurnOutcome.FAILED
        self.end = TurnEnd(outcome=outcome, sdk_session_id=self.thread_id, failure=failure)


def _canonical(kind: str, item: Mapping[str, Any]) -> str:
    if kind == "mcpToolCall":
        return f"mcp.{item.get('server')}.{item.get('tool')}"
    if kind == "fileChange":
        kinds = [(change.get("kind") or {}).get("type") for change in item.get("changes") or []]
        return "write" if kinds and all(each == "add" for each in kinds) else "edit"
    return _TOOLS[kind]


def _title(kind: str, item: Mapping[str, Any]) -> str:
    changed = ", ".join(str(change.get("path")) for change in item.get("changes") or [])
    actions = [str(action.get("command")) for action in item.get("commandActions") or [] if action.get("command")]
    own = (changed, " && ".join(actions), *(item.get(name) for name in ("command", "query", "path", "tool")))
    return next((str(each) for each in own if each), kind)


def _text(item: Mapping[str, Any]) -> str:
    if item.get("type") == "reasoning":
        return "\n\n".join(str(part) for part in item.get("summary") or item.get("content") or [])
    return str(item.get("text") or "")


def _output(item: Mapping[str, Any]) -> str:
    if item.get("aggregatedOutput") is not None:
        return str(item["aggregatedOutput"]).removesuffix("\n")
    if isinstance(item.get("error"), dict):
        return str(item["error"].get("message", ""))
    result = item.get("result")
    content = result.get("content") if isinstance(result, dict) else item.get("contentItems")
    if isinstance(content, list):
        blocks = [one for one in content if isinstance(one, dict)]
        return "\n".join(str(one.get("text") or f"[{one.get('type')}]") for one in blocks)
    return "\n".join(str(change.get("diff", "")) for change in item.get("changes") or [])


def _facts(error: Mapping[str, Any]) -> list[str | int]:
    """What kind of error it is: Codex's name for it, and the model's status."""
    info = error.get("codexErrorInfo")
    if isinstance(info, dict):
        statuses = [about.get("httpStatusCode") for about in info.values() if isinstance(about, dict)]
        return [*info, *(status for status in statuses if isinstance(status, int))]
    return [str(info)]


def _failure(turn: Mapping[str, Any]) -> TurnFailure:
    error = turn.get("error") or {}
    facts = set(_facts(error))
    statuses = [fact for fact in facts if isinstance(fact, int)]
    message = str(error.get("message") or f"The turn ended as {turn.get('status')}.")
    refusal = _refusal(message)
    code, retryable = "agent_error", False
    if facts & _DENIED:
        code = "model_denied"
    elif facts & _BUSY:
        code, retryable = "rate_limited", True
    elif "httpConnectionFailed" in facts and not statuses:
        code, retryable = "model_unreachable", True
    elif statuses or facts & _LATER or "responseStreamDisconnected" in facts:
        code, retryable = "model_error", not statuses or statuses[0] >= _SERVER_FAULT
    elif facts & _OURS or refusal is not None:
        code = "model_error"
    return TurnFailure(code=code, message=shortened(refusal or message, 2000)[0], is_retryable=retryable)


def _refusal(message: str) -> str | None:
    """What the model said, if its whole answer is the message: so Codex tells of a request that was refused."""
    try:
        return str(json.loads(message)["error"]["message"])
    except (ValueError, TypeError, KeyError):
        return None
