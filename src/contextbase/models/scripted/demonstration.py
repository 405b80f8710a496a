"""What the model does without a script: look around, write a note about the task, and say that it is no real model."""

import hashlib
import re
from typing import Final

from contextbase.models.scripted.chat_history import ChatHistory
from contextbase.models.scripted.script import AnswerText, CallTool, ScriptTurn

__all__ = ["demonstration_turns"]

_HOW_TO: Final = (
    "I am contextbase's built-in demonstration model: I follow a fixed plan and understand nothing. To let a real "
    "model work here, an administrator sets CONTEXTBASE_MODEL_ANTHROPIC_KEY or CONTEXTBASE_MODEL_OPENAI_KEY for the "
    "server, or runs `contextbase model connect`."
)
_LONGEST_TASK: Final = 2000
_MOST_FILES: Final = 20


def demonstration_turns(task: str, history: ChatHistory, start: int) -> list[ScriptTurn]:
    """All turns for a task that was given at `start`."""
    results = history.results_after(start)
    path = f"demo-notes/{_slug(task)}.md"
    return [
        ScriptTurn(
            parts=(
                AnswerText("I am the built-in demonstration model. First I look at the files here."),
                CallTool("bash", {"command": "ls -1", "description": "List the files"}),
            )
        ),
        ScriptTurn(
            parts=(
                AnswerText("Now I write a short note about your task."),
                CallTool("write", {"path": path, "content": _note(task, results[0] if results else "")}),
            )
        ),
        ScriptTurn(parts=(AnswerText(f"I wrote {path} with what you asked for. {_HOW_TO}"),)),
    ]


def _slug(task: str) -> str:
    """Another task gives another file: nothing is overwritten."""
    words = re.findall(r"[a-z0-9]+", task.lower())[:6]
    return "-".join([*words, hashlib.sha256(task.encode()).hexdigest()[:6]])[:80]


def _note(task: str, listing: str) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in task[:_LONGEST_TASK].splitlines())
    files = [f"- {name}" for name in listing.splitlines() if re.fullmatch(r"[\w. -]{1,100}", name)][:_MOST_FILES]
    found = "\n".join(files) or "The folder was empty, or its files could not be listed."
    return f"# A task\n\n{quoted}\n\n## Files that were there\n\n{found}\n\n{_HOW_TO}\n"
