"""A run as it happens: what the agent says on standard output, what it does on standard error."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from contextbase.interfaces.cli.output import error_console, on_one_line, visible
from contextbase.interfaces.cli.run_progress import RunProgress, duration, tool_words
from contextbase.interfaces.cli.todo_marks import TODO_MARKS

__all__ = ["RunPrinter"]

_ERASE: Final = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
_MARKS: Final = {"ok": ("✓", "green"), "error": ("✗", "red")}


class RunPrinter:
    """Take every event of a run in order. On a terminal the last line says what goes on now; it is replaced as things
    go on."""

    def __init__(self) -> None:
        self.progress = RunProgress()
        self._said: dict[tuple[str, int], str] = {}  # of the message under way
        self._tools: dict[str, tuple[str, float]] = {}
        self._is_in_line = False
        self._has_status = False

    def take(self, kind: str, payload: Mapping[str, Any]) -> None:
        self.progress.take(kind, payload)
        match kind:
            case "message.delta" | "message.done":
                self._say(kind, payload)
            case "message.stop":
                self._end_line()
                self._said.clear()
            case "message.restarted":
                self.note("… the model starts this answer again", "dim")
                self._said.clear()
            case "tool.start":
                self._tools[str(payload.get("tool_id"))] = (tool_words(payload), time.monotonic())
            case "tool.end":
                self._tool_ended(payload)
            case "todo.snapshot":
                self._todos(payload)
            case "rate_limited":
                self.note(self.progress.doing, "yellow")
            case "egress" if payload.get("outcome") != "allowed":
                where = f"{payload.get('host')}:{payload.get('port')}"
                self.note(f"✗ connection to {where}: {payload.get('outcome')}", "yellow")
            case _:
                pass
        self._show_status()

    def note(self, text: str, style: str = "") -> None:
        """A line of ours between what the agent says."""
        self._end_line()
        error_console.print(Text(on_one_line(text), style), soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Nothing of the run is shown any more; the next line is anybody's."""
        self._end_line()

    def _say(self, kind: str, payload: Mapping[str, Any]) -> None:
        key, text = (str(payload.get("message_id")), int(payload.get("part") or 0)), str(payload.get("text", ""))
        before = self._said.get(key, "")
        if kind == "message.done":
            if not text.startswith(before):
                return  # it was shown as it came
            text = text[len(before) :]
        if not text:
            return
        self._erase_status()
        if not before:
            self._end_line()
        self._said[key] = before + text
        sys.stdout.write(visible(text))
        sys.stdout.flush()
        self._is_in_line = not text.endswith("\n")

    def _tool_ended(self, payload: Mapping[str, Any]) -> None:
        words, began = self._tools.pop(str(payload.get("tool_id")), ("", None))
        status = str(payload.get("status"))
        mark, style = _MARKS.get(status, ("·", "yellow"))
        took = "" if began is None else f"  {duration(time.monotonic() - began)}"
        self._end_line()
        line = Text.assemble((f"{mark} ", style), (on_one_line(words), "cyan"), (took, "dim"))
        error_console.print(line, soft_wrap=True, highlight=False)
        if status == "error":
            why = next((line for line in str(payload.get("output") or "").splitlines() if line.strip()), "")
            error_console.print(Text(f"  {on_one_line(why)[:200]}", "red"), soft_wrap=True, highlight=False)

    def _todos(self, payload: Mapping[str, Any]) -> None:
        todos = payload.get("todos")
        for todo in todos if isinstance(todos, list) else ():
            if isinstance(todo, dict):
                mark = TODO_MARKS.get(str(todo.get("status")), "[ ]")
                self.note(f"  {mark} {todo.get('content', '')}", "dim")

    def _show_status(self) -> None:
        if not error_console.is_terminal or self._is_in_line or self.progress.is_ended:
            return
        running = list(self._tools.values())
        words = running[-1][0] if running else f"{self.progress.words} …"
        self._erase_status()
        shown = Text(f"· {on_one_line(words)}", "dim")
        shown.truncate(max(10, error_console.width - 1), overflow="ellipsis")
        error_console.print(shown, end="", soft_wrap=True, highlight=False)
        self._has_status = True

    def _erase_status(self) -> None:
        if self._has_status:
            error_console.control(_ERASE)
            self._has_status = False

    def _end_line(self) -> None:
        self._erase_status()
        if self._is_in_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._is_in_line = False
