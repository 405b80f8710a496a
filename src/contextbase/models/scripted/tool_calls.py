"""Canonical tools (bash, read, write, edit, search, ask, todo, mcp.SERVER.TOOL) as each program has them."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from contextbase.models.scripted.chat_history import ChatHistory
from contextbase.models.scripted.script import CallTool

__all__ = ["TOOL_SEARCH", "OfferedCall", "offered_call", "search_call"]

TOOL_SEARCH: Final = "tool_search"
"""By which a program lets its model find tools that it does not offer at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferedCall:
    name: str
    namespace: str = ""
    input: Any
    is_freeform: bool = False  # the input is text, not JSON


_Arguments = Callable[[dict[str, Any], str], Any]
_MCP: Final = "mcp."


def offered_call(call: CallTool, history: ChatHistory) -> OfferedCall | None:
    """The call as the program wants it; None if it offers no such tool."""
    offered = set(history.tools)
    given = call.input if isinstance(call.input, dict) else {}
    for name, arguments in _CANONICAL.get(call.name, {}).items():
        if name in offered:
            return OfferedCall(name=name, input=arguments(given, history.folder), is_freeform=name == "apply_patch")
    if call.name in offered:
        return _named(call.name, call.input)
    if call.name.startswith(_MCP):
        server, _, tool = call.name.removeprefix(_MCP).partition(".")
        for name in (f"mcp__{server}__{tool}", f"mcp__{server}.{tool}", f"{server}_{tool}", f"{server}.{tool}"):
            if name in offered:
                return _named(name, call.input)
    return None


def search_call(call: CallTool, history: ChatHistory) -> OfferedCall | None:
    """What finds a server's tool that is not offered; None: it is, or cannot be found, or was searched for before."""
    if not call.name.startswith(_MCP) or offered_call(call, history) is not None:
        return None
    words = call.name.removeprefix(_MCP).replace(".", " ")
    if TOOL_SEARCH not in history.tools or words in history.searches:
        return None
    return OfferedCall(name=TOOL_SEARCH, input={"query": words})


def _named(name: str, arguments: Any) -> OfferedCall:
    namespace, _, plain = name.rpartition(".")
    return OfferedCall(name=plain, namespace=namespace, input=arguments, is_freeform=isinstance(arguments, str))


def _below(folder: str, path: object) -> str:
    text = str(path)
    return text if text.startswith("/") else f"{folder}/{text.removeprefix('./')}"


def _shell(command: Callable[[dict[str, Any]], str]) -> _Arguments:
    return lambda given, _folder: {"cmd": command(given)}


def _added(given: dict[str, Any], _folder: str) -> str:
    lines = "".join(f"+{line}\n" for line in str(given["content"]).splitlines())
    return f"*** Begin Patch\n*** Add File: {given['path']}\n{lines}*** End Patch\n"


def _updated(given: dict[str, Any], _folder: str) -> str:
    removed = "".join(f"-{line}\n" for line in str(given["old"]).splitlines())
    added = "".join(f"+{line}\n" for line in str(given["new"]).splitlines())
    return f"*** Begin Patch\n*** Update File: {given['path']}\n@@\n{removed}{added}*** End Patch\n"


def _bash(given: dict[str, Any], _folder: str) -> dict[str, Any]:
    return {"command": given["command"], "description": given.get("description", "Run a command")}


def _claude_todos(given: dict[str, Any], _folder: str) -> dict[str, Any]:
    todos = [
        {"content": todo["content"], "status": _status(todo, "in_progress"), "activeForm": todo["content"]}
        for todo in given["todos"]
    ]
    return {"todos": todos}


def _plan(given: dict[str, Any], _folder: str) -> dict[str, Any]:
    return {"plan": [{"step": todo["content"], "status": _status(todo, "in_progress")} for todo in given["todos"]]}


def _opencode_todos(given: dict[str, Any], _folder: str) -> dict[str, Any]:
    todos = [
        {"content": todo["content"], "status": _status(todo, "in_progress"), "priority": "medium"}
        for todo in given["todos"]
    ]
    return {"todos": todos}


def _asked(given: dict[str, Any], _folder: str) -> dict[str, Any]:
    choices = [{"label": str(option), "description": str(option)} for option in given.get("options", ())]
    question = {"id": "answer", "header": "Question", "question": given["question"], "options": choices}
    return {"questions": [question | {"multiSelect": bool(given.get("multiple"))}]}


def _status(todo: dict[str, Any], doing: str) -> str:
    return {"todo": "pending", "doing": doing, "done": "completed"}.get(str(todo.get("status", "todo")), "pending")


_CANONICAL: Final[Mapping[str, Mapping[str, _Arguments]]] = {
    "bash": {"Bash": _bash, "exec_command": _shell(lambda given: str(given["command"])), "bash": _bash},
    "read": {
        "Read": lambda given, folder: {"file_path": _below(folder, given["path"])},
        "read": lambda given, folder: {"filePath": _below(folder, given["path"])},
        "exec_command": _shell(lambda given: f"cat -- {shlex.quote(str(given['path']))}"),
    },
    "write": {
        "Write": lambda given, folder: {"file_path": _below(folder, given["path"]), "content": given["content"]},
        "write": lambda given, folder: {"filePath": _below(folder, given["path"]), "content": given["content"]},
        "apply_patch": _added,
        "exec_command": _shell(
            lambda given: (
                f"mkdir -p -- {shlex.quote(_parent(given['path']))} && printf %s "
                f"{shlex.quote(str(given['content']))} > {shlex.quote(str(given['path']))}"
            )
        ),
    },
    "edit": {
        "Edit": lambda given, folder: {
            "file_path": _below(folder, given["path"]),
            "old_string": given["old"],
            "new_string": given["new"],
        },
        "edit": lambda given, folder: {
            "filePath": _below(folder, given["path"]),
            "oldString": given["old"],
            "newString": given["new"],
        },
        "apply_patch": _updated,
    },
    "search": {
        "Grep": lambda given, folder: {"pattern": given["pattern"], "path": _below(folder, given.get("path", "."))},
        "grep": lambda given, folder: {"pattern": given["pattern"], "path": _below(folder, given.get("path", "."))},
        "exec_command": _shell(
            lambda given: f"grep -rn -- {shlex.quote(given['pattern'])} {shlex.quote(given.get('path', '.'))}"
        ),
    },
    "ask": {"AskUserQuestion": _asked, "request_user_input": _asked, "question": _asked},
    "todo": {"TodoWrite": _claude_todos, "update_plan": _plan, "todowrite": _opencode_todos},
}


def _parent(path: object) -> str:
    return str(path).rpartition("/")[0] or "."
