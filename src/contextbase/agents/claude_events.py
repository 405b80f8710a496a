"""What Claude Code says, as our events. Pure: lines in, events out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from contextbase.agents.model import TurnEnd, TurnFailure, TurnOutcome
from contextbase.agents.shortening import shortened, shortened_values
from contextbase.agents.spoken import Event, tool_end
from contextbase.agents.todo_lists import TodoLists, listed_todos
from contextbase.agents.turns import RESUME_FAILED

__all__ = ["ClaudeTranslator"]

_TOOLS: Final = {
    "Bash": "bash",
    "BashOutput": "bash",
    "KillShell": "bash",
    "Read": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Write": "write",
    "Grep": "search",
    "Glob": "search",
    "LS": "search",
    "WebFetch": "web",
    "WebSearch": "web",
    "TodoWrite": "todo",
}
_TITLE_FROM: Final = ("command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description")
_BLOCKS: Final = {"text": "message", "thinking": "reasoning"}
_DELTAS: Final = {"text_delta": "text", "thinking_delta": "thinking"}
_FORGOTTEN: Final = "No conversation found with session ID"
_MCP: Final = "mcp__"


@dataclass(kw_only=True)
class _OpenMessage:
    message_id: str
    kinds: dict[int, str] = field(default_factory=dict)  # of its blocks that are text: message or reasoning
    texts: dict[int, str] = field(default_factory=dict)
    is_cut: bool = False  # it begins again


class ClaudeTranslator:
    """Of one turn. `key` makes message ids unique in a session."""

    def __init__(self, key: str) -> None:
        self.session_id: str | None = None
        self.version: str | None = None
        self.end: TurnEnd | None = None
        self._key = key
        self._number = 0
        self._open: dict[str | None, _OpenMessage] = {}  # by the tool that a helper of the agent works for
        self._streamed: set[str] = set()  # the program's own ids of messages
        self._tools: dict[str, str] = {}  # that run
        self._todos = TodoLists()

    def events(self, line: Mapping[str, Any]) -> Iterator[Event]:
        match line.get("type"):
            case "system":
                yield from self._system(line)
            case "stream_event":
                yield from self._streaming(line.get("event") or {}, line.get("parent_tool_use_id"))
            case "assistant":
                yield from self._assistant(line.get("message") or {}, line.get("parent_tool_use_id"))
            case "user":
                yield from self._tool_results(line.get("message") or {})
            case "result":
                yield from self._result(line)

    def closing(self) -> Iterator[Event]:
        """For messages and tools that were cut off."""
        for open_message in self._open.values():
            yield from self._finished(open_message)
        self._open.clear()
        for tool_id in self._tools:
            yield tool_end(tool_id, "Interrupted.", is_error=True)
        self._tools.clear()

    def _system(self, line: Mapping[str, Any]) -> Iterator[Event]:
        if line.get("subtype") == "init":
            self.session_id = line.get("session_id") or self.session_id
            self.version = line.get("claude_code_version") or self.version
        elif line.get("subtype") == "api_retry":
            for open_message in self._open.values():
                if not open_message.is_cut:
                    open_message.is_cut = True
                    yield "message.restarted", {"message_id": open_message.message_id}
            if line.get("error_status") == 429:
                yield "rate_limited", {"retry_after": (line.get("retry_delay_ms") or 0) / 1000}

    def _streaming(self, event: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        kind = event.get("type")
        if kind == "message_start":
            before = self._open.get(parent)
            if before is None:
                self._open[parent] = _OpenMessage(message_id=self._next_id())
            else:
                if not before.is_cut:
                    yield "message.restarted", {"message_id": before.message_id}
                self._open[parent] = _OpenMessage(message_id=before.message_id)
            self._streamed.add(str((event.get("message") or {}).get("id")))
            return
        message = self._open.get(parent)
        if message is None or message.is_cut:
            return
        index = int(event.get("index") or 0)
        if kind == "content_block_start":
            block = (event.get("content_block") or {}).get("type")
            if block in _BLOCKS:
                message.kinds[index], message.texts[index] = _BLOCKS[block], ""
        elif kind == "content_block_delta" and index in message.kinds:
            delta = event.get("delta") or {}
            text = str(delta.get(_DELTAS.get(str(delta.get("type")), ""), ""))
            if text:
                message.texts[index] += text
                data = {"message_id": message.message_id, "part": index, "text": text}
                yield f"{message.kinds[index]}.delta", data
        elif kind == "content_block_stop" and index in message.kinds:
            yield self._done(message, index)
        elif kind == "message_stop":
            del self._open[parent]
            yield from self._finished(message)

    def _done(self, message: _OpenMessage, index: int) -> Event:
        kind, text = message.kinds.pop(index), message.texts.pop(index)
        return f"{kind}.done", {"message_id": message.message_id, "part": index, "text": text}

    def _finished(self, message: _OpenMessage) -> Iterator[Event]:
        if not message.is_cut:
            for index in tuple(message.kinds):
                yield self._done(message, index)
        yield "message.stop", {"message_id": message.message_id}

    def _assistant(self, message: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        blocks = [block for block in message.get("content") or [] if isinstance(block, dict)]
        texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
        if texts and str(message.get("id")) not in self._streamed:  # the program's own words
            message_id = self._next_id()
            for part, text in enumerate(texts):
                yield "message.done", {"message_id": message_id, "part": part, "text": text}
            yield "message.stop", {"message_id": message_id}
        for block in blocks:
            if block.get("type") == "tool_use":
                yield from self._tool_start(block, parent)

    def _tool_start(self, block: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        tool_id, name, given = str(block.get("id")), str(block.get("name")), block.get("input")
        given = given if isinstance(given, dict) else {}
        self._tools[tool_id] = name
        title = next((str(given[each]) for each in _TITLE_FROM if given.get(each)), name)
        data = {
            "tool_id": tool_id,
            "name": _canonical(name),
            "title": shortened(title, 200)[0],
            "input": shortened_values(given),
            "raw": name,
        }
        yield "tool.start", data | ({"parent_tool_id": parent} if parent else {})
        if name == "TodoWrite" and isinstance(given.get("todos"), list):
            yield self._todos.snapshot(listed_todos(given["todos"]))

    def _tool_results(self, message: Mapping[str, Any]) -> Iterator[Event]:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                tool_id = str(block.get("tool_use_id"))
                if self._tools.pop(tool_id, None) is None:
                    continue
                yield tool_end(tool_id, _text(block.get("content")), is_error=bool(block.get("is_error")))

    def _result(self, line: Mapping[str, Any]) -> Iterator[Event]:
        self.session_id = line.get("session_id") or self.session_id
        yield from self.closing()
        by_model = line.get("modelUsage")
        for model, used in by_model.items() if isinstance(by_model, dict) else ():
            yield (
                "usage",
                {
                    "model": model,
                    "input_tokens": used.get("inputTokens", 0),
                    "output_tokens": used.get("outputTokens", 0),
                    "cache_read_tokens": used.get("cacheReadInputTokens", 0),
                    "cache_write_tokens": used.get("cacheCreationInputTokens", 0),
                },
            )
        failure = _failure(line)
        outcome = TurnOutcome.COMPLETED if failure is None else TurnOutcome.FAILED
        self.end = TurnEnd(outcome=outcome, sdk_session_id=self.session_id, failure=failure)

    def _next_id(self) -> str:
        self._number += 1
        return f"{self._key}:{self._number}"


def _canonical(name: str) -> str:
    if name.startswith(_MCP):
        server, _, tool = name.removeprefix(_MCP).partition("__")
        return f"mcp.{server}.{tool}"
    return _TOOLS.get(name, "other")


def _text(content: Any) -> str:
    if isinstance(content, list):
        blocks = [one for one in content if isinstance(one, dict)]
        return "\n".join(str(one.get("text") or f"[{one.get('type')}]") for one in blocks)
    return "" if content is None else str(content)


def _failure(line: Mapping[str, Any]) -> TurnFailure | None:
    subtype = str(line.get("subtype"))
    if subtype == "success" and not line.get("is_error"):
        return None
    errors = line.get("errors")
    said = str(line.get("result") or (errors[0] if isinstance(errors, list) and errors else "") or subtype)
    status = line.get("api_error_status")
    if subtype == "error_max_turns":
        code, retryable = "max_turns", False
    elif subtype != "success":
        code, retryable = (RESUME_FAILED if _FORGOTTEN in said else "agent_error"), False
    elif status == 429:
        code, retryable = "rate_limited", True
    elif status in {401, 403}:
        code, retryable = "model_denied", False
    else:
        code, retryable = "model_error", status is None or int(status) >= 500
    return TurnFailure(code=code, message=shortened(said, 2000)[0], is_retryable=retryable)
