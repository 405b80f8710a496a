"""What a request says happened so far, read from any of the three dialects."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from contextbase.models.model import Dialect
from contextbase.models.ports import ModelRequest

__all__ = ["ChatHistory", "HistoryEntry", "Speaker", "read_history"]

# What programs add to a user's words by themselves.
_ADDED: Final = re.compile(
    r"<(system-reminder|environment_context|user_instructions|permissions instructions|INSTRUCTIONS|skills_instructions"
    r"|collaboration_mode|apps_instructions|plugins_instructions)>.*?</\1>"
    r"|# AGENTS\.md instructions[^\n]*\n",
    re.DOTALL,
)
_SAID_BY_PROGRAM: Final = "No response requested."  # Claude Code's own words for a turn that was interrupted
_FOLDER: Final = re.compile(r"(?:[Ww]orking directory|<cwd>|\bcwd\b)[^/\n]{0,24}(/[^\s<>\"'`\\]+)")
_DEFAULT_FOLDER: Final = "/workspace"
_MODEL_ITEMS: Final = frozenset({"function_call", "custom_tool_call", "reasoning", "local_shell_call"})
_RESULT_ITEMS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_SEARCH, _FOUND = "tool_search_call", "tool_search_output"  # neither is an answer: they only make tools known


class Speaker(Enum):
    USER = auto()
    MODEL = auto()
    TOOL = auto()


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    speaker: Speaker
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatHistory:
    entries: tuple[HistoryEntry, ...]
    tools: tuple[str, ...]  # as offered, or found by a search; those of a namespace as namespace.name
    folder: str  # that the program works in
    searches: frozenset[str] = frozenset()  # for tools: the words that were searched for

    def users(self) -> list[tuple[int, str]]:
        """Where users spoke, and what they said."""
        return [(at, entry.text) for at, entry in enumerate(self.entries) if entry.speaker is Speaker.USER]

    def answers_after(self, start: int) -> int:
        """How many answers the model gave after that entry; what it said without a break is one."""
        speakers = [entry.speaker for entry in self.entries[start + 1 :]]
        before = [Speaker.USER, *speakers]
        return sum(
            now is Speaker.MODEL and last is not Speaker.MODEL for last, now in zip(before, speakers, strict=False)
        )

    def results_after(self, start: int) -> list[str]:
        return [entry.text for entry in self.entries[start + 1 :] if entry.speaker is Speaker.TOOL]


def read_history(request: ModelRequest) -> ChatHistory:
    document = request.document
    searches: Iterable[str] = ()
    match request.dialect:
        case Dialect.MESSAGES:
            entries = _of_messages(_dicts(document.get("messages")))
            tools = [str(tool.get("name", "")) for tool in _dicts(document.get("tools"))]
        case Dialect.RESPONSES:
            given = document.get("input")
            items = [{"role": "user", "content": given}] if isinstance(given, str) else _dicts(given)
            found_tools = [tool for item in items if item.get("type") == _FOUND for tool in _dicts(item.get("tools"))]
            entries, tools = _of_items(items), _tools_of_responses([*_dicts(document.get("tools")), *found_tools])
            searches = (_searched(item) for item in items if item.get("type") == _SEARCH)
        case Dialect.CHAT:
            entries = _of_chat(_dicts(document.get("messages")))
            tools = [str((tool.get("function") or {}).get("name", "")) for tool in _dicts(document.get("tools"))]
    found = _FOLDER.search(request.body.decode(errors="replace").replace("\\n", "\n"))
    return ChatHistory(
        entries=tuple(entries),
        tools=tuple(tools),
        folder=found[1].rstrip("/.,") if found else _DEFAULT_FOLDER,
        searches=frozenset(searches),
    )


def _of_messages(messages: Iterable[dict[str, Any]]) -> Iterator[HistoryEntry]:
    for message in messages:
        content = message.get("content")
        if message.get("role") == "assistant":
            if _text(content) != _SAID_BY_PROGRAM:
                yield HistoryEntry(Speaker.MODEL)
            continue
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _dicts(content)
        for block in blocks:
            if block.get("type") == "tool_result":
                yield HistoryEntry(Speaker.TOOL, _text(block.get("content")))
        yield from _user("\n".join(_text(block) for block in blocks if block.get("type") == "text"))


def _of_items(items: Iterable[dict[str, Any]]) -> Iterator[HistoryEntry]:
    for item in items:
        kind = item.get("type", "message")
        if kind in _MODEL_ITEMS or (kind == "message" and item.get("role") == "assistant"):
            yield HistoryEntry(Speaker.MODEL)
        elif kind in _RESULT_ITEMS:
            yield HistoryEntry(Speaker.TOOL, _text(item.get("output")))
        elif kind == "message" and item.get("role") == "user":
            yield from _user(_text(item.get("content")))


def _of_chat(messages: Iterable[dict[str, Any]]) -> Iterator[HistoryEntry]:
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            yield HistoryEntry(Speaker.MODEL)
        elif role == "tool":
            yield HistoryEntry(Speaker.TOOL, _text(message.get("content")))
        elif role == "user":
            yield from _user(_text(message.get("content")))


def _user(text: str) -> Iterator[HistoryEntry]:
    words = _ADDED.sub("", text).strip()
    if words:
        yield HistoryEntry(Speaker.USER, words)


def _tools_of_responses(tools: Iterable[dict[str, Any]]) -> list[str]:
    names = []
    for tool in tools:
        inner = _dicts(tool.get("tools")) or [tool]
        prefix = f"{tool.get('name')}." if tool.get("tools") else ""
        names += [prefix + str(one.get("name") or one.get("type")) for one in inner]
    return names


def _searched(call: dict[str, Any]) -> str:
    given = call.get("arguments")
    given = json.loads(given) if isinstance(given, str) else given
    return str(given.get("query")) if isinstance(given, dict) else ""


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text", ""))
    return "" if content is None else str(content).replace("\r", "")
